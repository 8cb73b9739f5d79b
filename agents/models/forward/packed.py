"""Packed rows: padding is not computed, and a prefix that rows share is computed once.

All tokens form one row of the model's input. An attention function, registered with transformers,
gets the segments that belong together; all other layers treat each token separately.

Legend: S tokens that are computed, N scored positions, H query heads, J key-value heads, E head
width, Q queries and K keys of one segment.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from coterie.agents.models.forward.segments import Segments
from coterie.agents.models.process import without_scipy

with without_scipy():
    from transformers import AttentionInterface, GenerationMixin  # noqa: F401

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FAMILIES = frozenset(
    {"llama", "mistral", "qwen2", "qwen3", "phi3", "mixtral", "qwen3_moe", "gemma3_text"}
)
"""Architectures (``model_type``) whose blocks pass unknown arguments on to attention, and whose
attention masks only the future and positions beyond a window."""
_NAME = "coterie_packed"
SHARED_FROM = 16
"""Minimum shared-prefix length worth computing once, in tokens."""


@dataclass(frozen=True)
class Segment:
    """Consecutive tokens ``own`` that attend to each other, and to a shared prefix ``start``."""

    own: range
    start: range = range(0)

    @property
    def queries(self) -> int:
        """Number of own tokens."""
        return len(self.own)

    @property
    def keys(self) -> int:
        """Number of tokens that the last own token attends to."""
        return len(self.start) + len(self.own)


@dataclass(frozen=True)
class Packed:
    """Tokens of several rows, end to end."""

    ids_S: Ints
    position_S: Ints
    """The position of each token in its row."""
    segments: list[Segment]
    scored_N: Ints
    """Index into S of each scored position, row by row."""
    on_device: dict[str, Tensor] = field(default_factory=dict)
    """The layout for a GPU's kernel, made at the first call."""
    on_cpu: list[Segments] = field(default_factory=list)
    """The layout for a CPU, made at the first call; at most one entry."""


def pack(ids_BT: Ints, mask_BT: Bools) -> Packed:
    """Pack rows, each up to its last scored position.

    Args:
        ids_BT: (B, T) padded rows.
        mask_BT: (B, T - 1) true where the token after a position is scored; at least once.
    """
    first_B = np.argmax(mask_BT, 1)
    length_B = np.where(mask_BT, np.arange(mask_BT.shape[1]) + 1, 0).max(1)
    starts = [ids[: n + 1].tobytes() for ids, n in zip(ids_BT, first_B)]
    ids: list[Ints] = []
    positions: list[Ints] = []
    segments: list[Segment] = []
    scored: list[Ints] = []
    seen: dict[bytes, range] = {}
    size = 0

    def append(row: int, begin: int, end: int, start: range = range(0)) -> range:
        nonlocal size
        own = range(size, size + end - begin)
        if end > begin:
            ids.append(ids_BT[row, begin:end])
            positions.append(np.arange(begin, end))
            segments.append(Segment(own, start))
            size = own.stop
        return own

    for row, end in enumerate(length_B):
        if not end:
            continue
        positions_N, shared = np.flatnonzero(mask_BT[row]), int(first_B[row]) + 1
        if shared < SHARED_FROM or starts.count(starts[row]) == 1:
            scored.append(append(row, 0, int(end)).start + positions_N)
            continue
        if starts[row] not in seen:
            seen[starts[row]] = append(row, 0, shared)
        start = seen[starts[row]]
        rest = append(row, shared, int(end), start)
        # The last token of the prefix is scored, too; later positions lie in the rest.
        offset_N = np.where(positions_N < shared, start.start, rest.start - shared)
        scored.append(offset_N + positions_N)
    return Packed(np.concatenate(ids), np.concatenate(positions), segments, np.concatenate(scored))


@contextmanager
def packed_attention(config: Any) -> Iterator[None]:
    """Make models with this configuration take ``packed=`` inside the block; they mask nothing
    themselves."""
    before, config._attn_implementation = config._attn_implementation, _NAME
    try:
        yield
    finally:
        config._attn_implementation = before


def _attend(
    module: Any,
    q_1HSE: Tensor,
    k_1JSE: Tensor,
    v_1JSE: Tensor,
    attention_mask: None,
    *,
    packed: Packed,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """(1, S, H, E) the attention output of each query within its segment."""
    if not q_1HSE.is_cpu and q_1HSE.dtype != torch.float32:
        return _on_gpu(q_1HSE, k_1JSE, v_1JSE, packed, scaling, sliding_window), None
    if q_1HSE.is_cpu and Segments.fit(packed.segments, q_1HSE.shape[1]):
        if not packed.on_cpu:
            packed.on_cpu.append(Segments(packed.segments, q_1HSE.shape[1]))
        scale = q_1HSE.shape[-1] ** -0.5 if scaling is None else scaling
        q, k, v = (x[0].transpose(0, 1) for x in (q_1HSE, k_1JSE, v_1JSE))
        return packed.on_cpu[0].attend(q, k, v, scale, sliding_window)[None], None
    return _by_segment(q_1HSE, k_1JSE, v_1JSE, packed, scaling, sliding_window), None


def _by_segment(
    q_1HSE: Tensor,
    k_1JSE: Tensor,
    v_1JSE: Tensor,
    packed: Packed,
    scaling: float | None,
    window: int | None,
) -> Tensor:
    """Attend like :func:`_attend`, one segment after the other, on any device."""
    groups = q_1HSE.shape[1] // k_1JSE.shape[1]
    k, v = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (k_1JSE, v_1JSE))
    # Split once: the backward pass of each slice would fill a tensor of full length.
    sizes = [segment.queries for segment in packed.segments]
    pieces = {
        segment.own.start: parts
        for segment, *parts in zip(packed.segments, *(x.split(sizes, 2) for x in (q_1HSE, k, v)))
    }
    answers = []
    for segment in packed.segments:
        q, *own = pieces[segment.own.start]
        if segment.keys > segment.queries:
            own = [torch.cat(pair, 2) for pair in zip(pieces[segment.start.start][1:], own)]
        mask = None
        if segment.keys > segment.queries or (window and segment.keys > window):
            mask = _seen(segment, window, q.device)
        answers.append(
            F.scaled_dot_product_attention(
                q, *own, attn_mask=mask, is_causal=mask is None, scale=scaling
            )
        )
    return torch.cat(answers, 2).transpose(1, 2)


def _seen(segment: Segment, window: int | None, device: torch.device) -> Tensor:
    """(Q, K) true where a query may attend to a key."""
    query_Q1 = torch.arange(segment.keys - segment.queries, segment.keys, device=device)[:, None]
    ahead_QK = query_Q1 - torch.arange(segment.keys, device=device)
    return (ahead_QK >= 0) & (ahead_QK < (window or segment.keys))


def _on_gpu(
    q_1HSE: Tensor,
    k_1JSE: Tensor,
    v_1JSE: Tensor,
    packed: Packed,
    scaling: float | None,
    window: int | None,
) -> Tensor:
    """Attend like :func:`_attend`, with torch's kernel for rows of unequal length."""
    from torch.nn.attention.varlen import varlen_attn

    if not packed.on_device:
        order = [np.array(part, np.int64) for s in packed.segments for part in (s.start, s.own)]
        layout = {
            "order": np.concatenate(order),
            "queries": np.cumsum([0, *(s.queries for s in packed.segments)], dtype=np.int32),
            "keys": np.cumsum([0, *(s.keys for s in packed.segments)], dtype=np.int32),
        }
        packed.on_device.update(
            {n: torch.from_numpy(x).to(q_1HSE.device) for n, x in layout.items()}
        )
    where, groups, more = packed.on_device, q_1HSE.shape[1] // k_1JSE.shape[1], {}
    k, v = (x[0].transpose(0, 1).index_select(0, where["order"]) for x in (k_1JSE, v_1JSE))
    if groups > 1 and "enable_gqa" in signature(varlen_attn).parameters:
        more["enable_gqa"] = True
    elif groups > 1:  # torch before 2.12
        k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    out_SHE: Any = varlen_attn(
        q_1HSE[0].transpose(0, 1).contiguous(),
        k,
        v,
        where["queries"],
        where["keys"],
        max(s.queries for s in packed.segments),
        max(s.keys for s in packed.segments),
        scale=scaling,
        window_size=(window - 1 if window else -1, 0),
        **more,
    )
    return out_SHE[None]


AttentionInterface.register(_NAME, _attend)
