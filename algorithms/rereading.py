"""Rereading: rows are scored by a reader, which is a teacher or the role with another context."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt
import torch
from torch import Tensor

from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.batching import ReaderLogprobs
from coterie.algorithms.distillation import TokenSignal, describe_bonus, on_sampled, token_bonus
from coterie.datatypes import Trajectory


class RereadModel(Protocol):
    """What rereading needs to know of a role's model."""

    context: int

    @property
    def device(self) -> torch.device: ...


class Scorer(Protocol):
    """Computes log-probabilities, such as :class:`coterie.algorithms.batched_model.BatchedModel`,
    whose methods it has."""

    @property
    def model(self) -> RereadModel: ...

    def logprobs(self, rows: Sequence[Trajectory]) -> list[Tensor]: ...

    def likeliest(self, rows: Sequence[Trajectory], count: int) -> list[tuple[Tensor, ...]]: ...


RowBonus = dict[int, Tensor]
"""Index of a row -> (N,) what rereading adds to the advantages of its sampled tokens."""


@dataclass(frozen=True)
class Rereading:
    """Rereads rows and turns the differences into additions to token advantages."""

    settings: Distillation
    batched: Scorer
    weights: Callable[[str], AbstractContextManager[None]]
    """Uses the weights of a name inside the block: start, average or current."""

    def __call__(
        self, rows: Sequence[Trajectory], old: list[Tensor] | None, done: float
    ) -> tuple[TokenSignal, RowBonus, dict[str, float]]:
        """Return the signal of all rows, the bonus of their sampled tokens, and metrics.

        Args:
            rows: the rows of an update. A teacher has left its ``reading`` on the rows that it
                read; without a teacher, rows without ``reread_after`` are not reread.
            old: the rows' log-probabilities, (T - 1,) each; None: they are computed.
            done: completed share of the run, in [0, 1].
        """
        settings = self.settings.after(done)
        if not self.settings.beta:
            return TokenSignal(), {}, {}
        use = [i for i, row in enumerate(rows) if self._is_read(row)]
        if not use or not settings.beta:
            return TokenSignal(), {}, {"distillation/rows": 0.0}
        row_bonus, readers = self._read(rows, use, old, settings)
        metrics = describe_bonus(settings, list(row_bonus.values()))
        share = {"distillation/rows": len(use) / len(rows)}
        return self._signal(rows, row_bonus, readers), row_bonus, share | metrics

    def _is_read(self, row: Trajectory) -> bool:
        if self.settings.teacher:
            return row.reading is not None
        room, contexts = self.batched.model.context, (row, row.as_reread(), row.as_contrast())
        return row.reread_after is not None and all(c.can_be_scored(room) for c in contexts)

    def _read(
        self,
        rows: Sequence[Trajectory],
        use: Sequence[int],
        old: list[Tensor] | None,
        settings: Distillation,
    ) -> tuple[RowBonus, dict[int, ReaderLogprobs]]:
        """The bonus of each row in ``use``, and its reader if the likeliest tokens count."""
        read, readers = dict[int, Tensor](), dict[int, ReaderLogprobs]()
        for i, (logp_N, *likeliest) in zip(use, self._scores(rows, use, settings), strict=True):
            read[i] = logp_N
            if likeliest:
                ids_NK, logp_NK = likeliest
                beta_N = logp_N.new_full(logp_N.shape, settings.beta)
                readers[i] = ReaderLogprobs(ids_NK, logp_NK, beta_N, settings.bound)
        compared = self._compared_with(rows, use, old, settings)
        return {i: token_bonus(settings, read[i], compared[i]) for i in use}, readers

    def _compared_with(
        self,
        rows: Sequence[Trajectory],
        use: Sequence[int],
        old: list[Tensor] | None,
        settings: Distillation,
    ) -> dict[int, Tensor]:
        """Index of a row -> the (N,) log-probabilities with which its reading is compared: the
        reader's after ``contrast_after`` (RLCSD, arXiv:2606.11709), or without that the row's
        own."""
        contrasts = {i: rows[i].as_contrast() for i in use if rows[i].contrast_after is not None}
        originals = {i: rows[i] for i in use if i not in contrasts}
        compared, found = contrasts | originals, list[Tensor]()
        if contrasts:
            with self.weights(settings.reader):
                found += self.batched.logprobs([*contrasts.values()])
        if old is not None:
            found += [old[i] for i in originals]
        elif originals:
            with self.weights("current"):
                found += self.batched.logprobs([*originals.values()])
        return dict(zip(compared, on_sampled([*compared.values()], found), strict=True))

    def _scores(
        self, rows: Sequence[Trajectory], use: Sequence[int], settings: Distillation
    ) -> Sequence[tuple[Tensor, ...]]:
        """The reader's log-probabilities of the sampled tokens of each row in ``use``, (N,). If the
        likeliest tokens count, their ids and log-probabilities follow, (N, K) each."""
        if settings.teacher:
            readings = [reading for i in use if (reading := rows[i].reading) is not None]
            if settings.likeliest:
                arrays = [(r.logp_N, r.ids_NK, r.logp_NK) for r in readings]
            else:
                arrays = [(r.logp_N,) for r in readings]
            return [tuple(map(self._tensor, each)) for each in arrays]
        reread = [rows[i].as_reread() for i in use]
        with self.weights(settings.reader):
            if settings.likeliest:
                found = self.batched.likeliest(reread, settings.likeliest)
                return [(logp_N, ids_NK, logp_NK) for ids_NK, logp_NK, logp_N in found]
            return [(logp_N,) for logp_N in on_sampled(reread, self.batched.logprobs(reread))]

    def _tensor(self, array: npt.NDArray[Any] | None) -> Tensor:
        assert array is not None, "the teacher was not asked for its likeliest tokens"
        return torch.from_numpy(array).to(self.batched.model.device)

    def _signal(
        self, rows: Sequence[Trajectory], row_bonus: RowBonus, readers: dict[int, ReaderLogprobs]
    ) -> TokenSignal:
        if readers:
            return TokenSignal(readers=[readers.get(i) for i in range(len(rows))])
        bonus = [torch.zeros(len(row.tokens) - 1, device=self.batched.model.device) for row in rows]
        for i, bonus_N in row_bonus.items():
            bonus[i][torch.from_numpy(rows[i].mask[1:]).to(bonus_N.device)] = bonus_N
        return TokenSignal(bonus=bonus)
