"""Micro-batches: rows are divided by a token budget and padded to tensors.

Legend: B rows of a micro-batch, T tokens of the longest of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from coterie.datatypes import Trajectory


@dataclass(frozen=True)
class ReaderLogprobs:
    """A reader's distribution of the next token at N positions."""

    ids_NK: Tensor
    """The reader's likeliest tokens."""
    logp_NK: Tensor
    beta_N: Tensor
    """Weight of the reader; 0 in rows without a reader."""
    bound: float
    """Largest difference in log-probability, in nats."""

    @property
    def columns(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors with one entry for each position."""
        return self.ids_NK, self.logp_NK, self.beta_N


@dataclass(frozen=True)
class Batch:
    """Rows, padded on the right.

    Column t of the (B, T - 1) tensors describes token t + 1, which position t predicts. A row's
    first token is therefore never scored.
    """

    ids_BT: Tensor
    mask_BT: Tensor
    """(B, T - 1) true on sampled tokens."""
    sampler_BT: Tensor
    """(B, T - 1) the sampler's log-probabilities."""
    advantage_B: Tensor
    weight_B: Tensor
    """Each row's loss weight."""
    bonus_BT: Tensor | None = None
    """(B, T - 1) additions to the advantage of each token."""
    reader: ReaderLogprobs | None = None
    """The reader at all sampled tokens, row by row."""

    @property
    def advantage_BT(self) -> Tensor:
        """(B, 1) advantages, or (B, T - 1) if each token has one."""
        advantage_B1 = self.advantage_B[:, None]
        return advantage_B1 if self.bonus_BT is None else advantage_B1 + self.bonus_BT


def capped_budget(budget: int, longest: int, uncheckpointed: int | None) -> int:
    """Cap ``budget`` at the tokens whose activations fit without recomputation.

    Args:
        budget: most tokens of a micro-batch.
        longest: tokens of the longest row.
        uncheckpointed: tokens above which activations are computed twice; None: the device gains
            from large micro-batches, so there is no cap.
    """
    if uncheckpointed is None or longest > uncheckpointed:
        return budget
    # Half of what fits costs 5 % of the speed and saves 2.5 GB for half a billion weights.
    return min(budget, max(longest, uncheckpointed // 2))


def micro_batches(
    rows: Sequence[Trajectory], budget: int, *, shares_from: int | None = None
) -> list[list[int]]:
    """Divide rows into micro-batches of at most ``budget`` computed tokens; return row indices.

    Padded rows are as long as the longest row of their batch, so rows of similar length go
    together. Packed rows have no padding, and a batch computes a prefix of ``shares_from`` tokens
    or more once for all rows that share it. A row longer than the budget gets its own batch. The
    longest rows come first, so that a run that does not fit in memory fails at once.

    Args:
        rows: the rows to divide.
        budget: most tokens of a micro-batch.
        shares_from: minimum shared-prefix length in tokens; None: rows are padded.
    """
    if shares_from is not None:
        return _pack(rows, budget, shares_from)
    lengths = [len(row.tokens) for row in rows]
    order = _longest_first(rows, range(len(rows)))
    batches: list[list[int]] = []
    room = 0
    for i in order:
        if room == 0:
            batches.append([])
            room = max(1, budget // max(lengths[i], 1))
        batches[-1].append(i)
        room -= 1
    return batches


def _pack(rows: Sequence[Trajectory], budget: int, shares_from: int) -> list[list[int]]:
    scored = [np.flatnonzero(row.mask[1:]) + 1 for row in rows]
    needed = [int(positions[-1]) for positions in scored]
    prompt = [int(positions[0]) for positions in scored]
    # Rows with equal prefixes can share them. A short prompt is unique to its row: the row index.
    prefixes = [
        (row.tokens[:n].tobytes(), 0) if n >= shares_from else (b"", i)
        for i, (row, n) in enumerate(zip(rows, prompt))
    ]
    longest: dict[tuple[bytes, int], int] = {}
    for prefix, n in zip(prefixes, needed):
        longest[prefix] = max(n, longest.get(prefix, 0))
    # Rows of one prefix stand together.
    order = sorted(
        range(len(rows)), key=lambda i: (-longest[prefixes[i]], prefixes[i], -needed[i], i)
    )
    batches: list[list[int]] = []
    used, computed = budget, set()
    for i in order:
        cost = needed[i] - prompt[i] if prefixes[i] in computed else needed[i]
        if used + cost > budget:
            batches.append([])
            used, computed, cost = 0, set(), needed[i]
        batches[-1].append(i)
        used += cost
        computed.add(prefixes[i])
    return [_longest_first(rows, batch) for batch in batches]


def _longest_first(rows: Sequence[Trajectory], use: Iterable[int]) -> list[int]:
    return sorted(use, key=lambda i: (-len(rows[i].tokens), i))


def split_evenly(rows: int, parts: int) -> list[range]:
    """Split ``range(rows)`` into at most ``parts`` consecutive ranges, none empty, of sizes that
    differ by at most 1."""
    parts = min(parts, rows)
    edges = [rows * i // parts for i in range(parts + 1)] if parts else [0]
    return [range(a, b) for a, b in pairwise(edges)]


def by_agent(rows: Sequence[Trajectory]) -> list[list[int]]:
    """Return the row indices of each agent of an episode, in order of appearance. An agent has one
    row for each context that it began."""
    indices: dict[str | int, list[int]] = {}
    for i, row in enumerate(rows):
        indices.setdefault(row.member or i, []).append(i)
    return list(indices.values())


def scored_tokens(trajectory: Trajectory) -> int:
    """Count the sampled tokens that can be scored: all but the first token of a context."""
    return int(np.count_nonzero(trajectory.mask[1:]))


def pad(
    trajectories: Sequence[Trajectory],
    advantage_B: npt.NDArray[np.float64],
    device: torch.device | str = "cpu",
    bonus: Sequence[Tensor] | None = None,
    readers: Sequence[ReaderLogprobs | None] = (),
) -> Batch:
    """Pad trajectories to one batch.

    Args:
        trajectories: the rows, at least one.
        advantage_B: one advantage for each row.
        device: the device of the tensors.
        bonus: (T - 1,) for each row, added to the advantage of each token.
        readers: one for each row, None for rows that were not reread; empty: no row was.
    """
    rows, width = len(trajectories), max(len(t.tokens) for t in trajectories)
    ids = np.zeros((rows, width), np.int64)
    mask = np.zeros((rows, width), np.bool_)
    sampler = np.zeros((rows, width), np.float32)
    for i, t in enumerate(trajectories):
        n = len(t.tokens)
        ids[i, :n], mask[i, :n], sampler[i, :n] = t.tokens, t.mask, t.logprobs
    weight = np.array([t.loss_weight for t in trajectories], np.float32)
    return Batch(
        ids_BT=torch.from_numpy(ids).to(device),
        mask_BT=torch.from_numpy(mask[:, 1:]).to(device),
        sampler_BT=torch.from_numpy(sampler[:, 1:]).to(device),
        advantage_B=torch.from_numpy(advantage_B.astype(np.float32)).to(device),
        weight_B=torch.from_numpy(weight).to(device),
        bonus_BT=None if bonus is None else pad_sequence(list(bonus), batch_first=True),
        reader=_join_readers(trajectories, readers),
    )


def _join_readers(
    trajectories: Sequence[Trajectory], readers: Sequence[ReaderLogprobs | None]
) -> ReaderLogprobs | None:
    """Concatenate the readers of all rows; rows without a reader get weight 0."""
    first = next((reader for reader in readers if reader is not None), None)
    if first is None:
        return None

    def unread(row: Trajectory) -> list[Tensor]:
        count, width = scored_tokens(row), first.ids_NK.shape[1]
        shapes = ((count, width), (count, width), (count,))
        return [column.new_zeros(shape) for column, shape in zip(first.columns, shapes)]

    columns = [
        reader.columns if reader is not None else unread(row)
        for row, reader in zip(trajectories, readers, strict=True)
    ]
    return ReaderLogprobs(*map(torch.cat, zip(*columns)), bound=first.bound)
