"""Attention of packed rows on a CPU: many short segments at once.

A kernel call for each segment would cost more than its computation, and the backward pass of each
slice would fill a tensor of full length. Instead, segments of similar length are padded to a batch
of matrix products, in float32 whatever the model's format.

Legend: S tokens that are computed, B segments of a batch, Q queries and K keys of the longest of
them, H query heads, J key-value heads, E head width.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Attention scores computed at once: 8 MiB fit into the caches of a few cores.
_SCORES_AT_ONCE = 1 << 21
_PADDED = 1.5
"""Largest ratio of computed scores, padding included, to needed ones."""


def causal_bias(position_BQ1: Tensor, keys: int, window: int | None) -> Tensor:
    """Return (B, 1, Q, K): 0 where a query sees a key, else -inf.

    Args:
        position_BQ1: the last position that each query sees.
        keys: number of keys, from position 0.
        window: number of latest positions that a query sees; None: all.
    """
    ahead_BQK = position_BQ1 - torch.arange(keys)
    hidden_BQK = ahead_BQK < 0
    if window is not None:
        hidden_BQK |= ahead_BQK >= window
        # Empty slots past the last key must stay finite: they see everything.
        hidden_BQK &= ~hidden_BQK.all(-1, keepdim=True)
    return torch.zeros(hidden_BQK.shape).masked_fill_(hidden_BQK, -torch.inf)[:, None]


class SegmentBatch:
    """Segments that attend together."""

    def __init__(self, segments: Sequence[Any]) -> None:
        self.shape = len(segments), max(s.queries for s in segments), max(s.keys for s in segments)
        rows, queries, keys = self.shape
        query_BQ, key_BK = np.zeros((rows, queries), np.int64), np.zeros((rows, keys), np.int64)
        slots: list[np.ndarray] = []
        for row, segment in enumerate(segments):
            query_BQ[row, : segment.queries] = np.arange(segment.own.start, segment.own.stop)
            start = len(segment.start)
            key_BK[row, :start] = np.arange(segment.start.start, segment.start.stop)
            key_BK[row, start : segment.keys] = query_BQ[row, : segment.queries]
            slots.append(row * queries + np.arange(segment.queries))
        self.token_N = np.concatenate([np.arange(s.own.start, s.own.stop) for s in segments])
        """The tokens whose outputs :meth:`attend` returns."""
        self._slot_N = torch.from_numpy(np.concatenate(slots))
        self._queries, self._keys = (torch.from_numpy(x.reshape(-1)) for x in (query_BQ, key_BK))
        first_B = torch.tensor([s.keys - s.queries for s in segments])
        position_BQ1 = (first_B[:, None] + torch.arange(queries))[:, :, None]
        self._bias = cache(lambda window: causal_bias(position_BQ1, keys, window))

    def attend(
        self, q_SHE: Tensor, k_SJE: Tensor, v_SJE: Tensor, scale: float, window: int | None
    ) -> Tensor:
        """Return the attention output of each query, (N, H, E).

        Args:
            q_SHE: queries of all rows.
            k_SJE: keys of all rows.
            v_SJE: values of all rows.
            scale: factor of the scores.
            window: latest positions that a query sees, its own included; None: all.
        """
        (rows, queries, keys), heads, kv_heads = self.shape, q_SHE.shape[1], k_SJE.shape[1]
        width = q_SHE.shape[2]

        def by_head(x_SJE: Tensor, index: Tensor, size: int) -> Tensor:
            x = x_SJE.index_select(0, index).float()
            return x.view(rows, size, -1, width).transpose(1, 2)

        q = by_head(q_SHE, self._queries, queries).reshape(rows * kv_heads, -1, width)
        k = by_head(k_SJE, self._keys, keys).reshape(rows * kv_heads, keys, width)
        v = by_head(v_SJE, self._keys, keys).reshape(rows * kv_heads, keys, width)
        scores = torch.bmm(q * scale, k.transpose(1, 2)).view(rows, heads, queries, keys)
        p = torch.softmax(scores + self._bias(window), -1)
        mixed = torch.bmm(p.view(rows * kv_heads, -1, keys), v).to(q_SHE.dtype)
        out = mixed.view(rows, heads, queries, width).transpose(1, 2).reshape(-1, heads, width)
        return out.index_select(0, self._slot_N)


class Segments:
    """All segments of packed rows, in batches."""

    def __init__(self, segments: Sequence[Any], heads: int) -> None:
        self._batches = [SegmentBatch(group) for group in _groups(segments, heads)]
        order_S = np.concatenate([batch.token_N for batch in self._batches])
        self._order_S = torch.from_numpy(np.argsort(order_S))

    @staticmethod
    def fit(segments: Sequence[Any], heads: int) -> bool:
        """Whether each segment's scores stay below :data:`_SCORES_AT_ONCE`."""
        return all(heads * s.queries * s.keys <= _SCORES_AT_ONCE for s in segments)

    def attend(
        self, q_SHE: Tensor, k_SJE: Tensor, v_SJE: Tensor, scale: float, window: int | None
    ) -> Tensor:
        """Return the attention output of each query within its segment, (S, H, E); arguments as in
        :meth:`SegmentBatch.attend`."""
        outputs = [batch.attend(q_SHE, k_SJE, v_SJE, scale, window) for batch in self._batches]
        return torch.cat(outputs).index_select(0, self._order_S)


def _groups(segments: Sequence[Any], heads: int) -> Iterator[list[Any]]:
    """Group segments of similar length, within the limit and with little padding."""
    group: list[Any] = []
    keys = real = 0
    for segment in sorted(segments, key=lambda s: (s.queries, s.keys)):
        keys, real = max(keys, segment.keys), real + segment.queries * segment.keys
        size = (len(group) + 1) * segment.queries * keys
        if group and (heads * size > _SCORES_AT_ONCE or size > _PADDED * real):
            yield group
            group, keys, real = [], segment.keys, segment.queries * segment.keys
        group.append(segment)
    yield group
