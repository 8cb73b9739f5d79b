"""Rows of unequal length as padded tensors, by token budget.

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
    """A reader's distribution of the next token at N places."""

    ids_NK: Tensor
    """Its likeliest tokens."""
    logp_NK: Tensor
    beta_N: Tensor
    """Its weight; 0 where no reader has read."""
    bound: float
    """Differences from it count as at most this."""

    @property
    def columns(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors with one entry a place."""
        return self.ids_NK, self.logp_NK, self.beta_N


@dataclass(frozen=True)
class Batch:
    """Rows, padded on the right. Column t of the (B, T - 1) tensors is about token t + 1, which is
    predicted at position t; so a row's first token is never scored."""

    ids_BT: Tensor
    mask_BT: Tensor
    """(B, T - 1) true on sampled tokens."""
    sampler_BT: Tensor
    """(B, T - 1) the sampler's log-probabilities."""
    advantage_B: Tensor
    weight_B: Tensor
    """Each row's loss weight."""
    bonus_BT: Tensor | None = None
    """(B, T - 1) what is added to the advantage of each token."""
    reader: ReaderLogprobs | None = None
    """At all sampled tokens, row by row."""

    @property
    def advantage_BT(self) -> Tensor:
        """(B, 1) the advantages, or (B, T - 1) where tokens have their own."""
        advantage_B1 = self.advantage_B[:, None]
        return advantage_B1 if self.bonus_BT is None else advantage_B1 + self.bonus_BT


def keeping(budget: int, longest: int, keeps: int | None) -> int:
    """Cap ``budget`` at the tokens whose activations fit without recomputation.

    Args:
        budget: most tokens of a micro-batch.
        longest: tokens of the longest row.
        keeps: tokens above which activations are computed twice; None: the device gains from
            large micro-batches, so there is no cap.
    """
    if keeps is None or longest > keeps:
        return budget
    # Half of what fits: 5 % slower, and 2.5 GB less for a model of half a billion weights.
    return min(budget, max(longest, keeps // 2))


def micro_batches(
    rows: Sequence[Trajectory], budget: int, *, shares_from: int | None = None
) -> list[list[int]]:
    """Indices of rows, so that a batch computes at most ``budget`` tokens.

    Padded rows are as long as the longest of their batch, and rows of similar length share one.
    Rows that stand end to end have no padding, and a start of ``shares_from`` tokens or more counts
    once for all rows of a batch that have it. A row that is longer than the budget is alone. The
    longest come first, so that a run which does not fit in memory fails at once.

    Args:
        rows: what is split.
        budget: tokens.
        shares_from: tokens of a shared start; None: rows are padded.
    """
    if shares_from is not None:
        return _end_to_end(rows, budget, shares_from)
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


def _end_to_end(rows: Sequence[Trajectory], budget: int, shares_from: int) -> list[list[int]]:
    scored = [np.flatnonzero(row.mask[1:]) + 1 for row in rows]
    needed = [int(places[-1]) for places in scored]
    shared = [int(places[0]) for places in scored]
    starts = [
        (row.tokens[:n].tobytes() if n >= shares_from else b"", 0 if n >= shares_from else i)
        for i, (row, n) in enumerate(zip(rows, shared))
    ]
    longest: dict[tuple[bytes, int], int] = {}
    for start, n in zip(starts, needed):
        longest[start] = max(n, longest.get(start, 0))
    order = sorted(range(len(rows)), key=lambda i: (-longest[starts[i]], starts[i], -needed[i], i))
    batches: list[list[int]] = []
    used, seen = budget, set()
    for i in order:
        more = needed[i] - shared[i] * (starts[i] in seen)
        if used + more > budget:
            batches.append([])
            used, seen, more = 0, set(), needed[i]
        batches[-1].append(i)
        used += more
        seen.add(starts[i])
    return [_longest_first(rows, batch) for batch in batches]


def _longest_first(rows: Sequence[Trajectory], use: Iterable[int]) -> list[int]:
    return sorted(use, key=lambda i: (-len(rows[i].tokens), i))


def split_evenly(rows: int, parts: int) -> list[range]:
    """``range(rows)`` in at most ``parts`` neighbouring pieces, none empty, sizes within 1."""
    parts = min(parts, rows)
    edges = [rows * i // parts for i in range(parts + 1)] if parts else [0]
    return [range(a, b) for a, b in pairwise(edges)]


def by_agent(rows: Sequence[Trajectory]) -> list[list[int]]:
    """Places of each agent's rows in its episode, in order of appearance: several where its context
    began anew."""
    places: dict[str | int, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row.member or place, []).append(place)
    return list(places.values())


def scored_tokens(trajectory: Trajectory) -> int:
    """Sampled tokens that can be scored: all but the first token of a context."""
    return int(np.count_nonzero(trajectory.mask[1:]))


def pad(
    trajectories: Sequence[Trajectory],
    advantage_B: npt.NDArray[np.float64],
    device: torch.device | str = "cpu",
    bonus: Sequence[Tensor] | None = None,
    readers: Sequence[ReaderLogprobs | None] = (),
) -> Batch:
    """Trajectories as one padded batch.

    Args:
        trajectories: the rows, at least one.
        advantage_B: the advantage of each.
        device: where the tensors lie.
        bonus: (T - 1,) of each row, added to the advantage of each token.
        readers: of each row, None for one that has not been read again; empty for none at all.
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
        reader=_joined(trajectories, readers),
    )


def _joined(
    trajectories: Sequence[Trajectory], readers: Sequence[ReaderLogprobs | None]
) -> ReaderLogprobs | None:
    """The readers of all rows as one; rows without a reader get the weight 0."""
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
