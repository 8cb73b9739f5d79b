"""Rows that are read again behind a context which their author did not have."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.batching import Reader
from coterie.algorithms.distillation import Lesson, describe_bonus, on_sampled, token_bonus
from coterie.algorithms.scorer import Scorer
from coterie.datatypes import Trajectory

Told = dict[int, Tensor]
"""Place of a row -> (N,) what reading it again says of its sampled tokens."""


@dataclass(frozen=True)
class Rereading:
    """Who reads, and how what it says is learned."""

    settings: Distillation
    scorer: Scorer
    weights: Callable[[str], AbstractContextManager[None]]
    """While open, the model has the weights of that name: start, average or current."""

    def __call__(
        self, rows: Sequence[Trajectory], old: list[Tensor] | None, done: float
    ) -> tuple[Lesson, Told, dict[str, float]]:
        """What is learned of every row; what its sampled tokens were told; and metrics of it.

        Args:
            old: the rows' log-probabilities, where these are known.
            done: share of the run that is over.
        """
        how = self.settings.after(done)
        if not self.settings.beta:
            return Lesson(), {}, {}
        # Those with which the model's context has room, and which stand behind something each time:
        # nothing predicts a first token.
        use = [i for i, r in enumerate(rows) if r.reread_after is not None and self._fits(r)]
        if not use or not how.beta:
            return Lesson(), {}, {"distillation/rows": 0.0}
        told, readers = self._told(rows, use, old, how)
        metrics = describe_bonus(how, list(told.values()))
        share = {"distillation/rows": len(use) / len(rows)}
        return self._lesson(rows, told, readers), told, share | metrics

    def _fits(self, row: Trajectory) -> bool:
        room, contexts = self.scorer.model.context, (row, row.as_reread())
        return all(len(one.tokens) <= room and not one.mask[0] for one in contexts)

    def _told(
        self,
        rows: Sequence[Trajectory],
        use: Sequence[int],
        old: list[Tensor] | None,
        settings: Distillation,
    ) -> tuple[Told, dict[int, Reader]]:
        """Also what the reader holds of the likeliest tokens, where it is asked of them."""
        behind = [rows[i].as_reread() for i in use]
        read, readers = {}, {}
        with self.weights(settings.reader):
            if settings.likeliest:
                tokens = self.scorer.likeliest(behind, settings.likeliest)
                for i, (ids_NK, logp_NK, logp_N) in zip(use, tokens, strict=True):
                    beta_N = logp_N.new_full(logp_N.shape, settings.beta)
                    read[i] = logp_N
                    readers[i] = Reader(ids_NK, logp_NK, beta_N, settings.bound)
            else:
                read = dict(zip(use, on_sampled(behind, self.scorer.logprobs(behind)), strict=True))
        themselves = [rows[i] for i in use]
        if old is None:
            with self.weights("current"):
                own = self.scorer.logprobs(themselves)
        else:
            own = [old[i] for i in use]
        own = on_sampled(themselves, own)
        return {i: token_bonus(settings, read[i], own_N) for i, own_N in zip(use, own)}, readers

    def _lesson(self, rows: Sequence[Trajectory], told: Told, readers: dict[int, Reader]) -> Lesson:
        """Of the likeliest tokens, or of the sampled ones."""
        if readers:
            return Lesson(readers=[readers.get(i) for i in range(len(rows))])
        bonus = [torch.zeros(len(row.tokens) - 1, device=self.scorer.model.device) for row in rows]
        for i, bonus_N in told.items():
            bonus[i][torch.from_numpy(rows[i].mask[1:]).to(bonus_N.device)] = bonus_N
        return Lesson(bonus=bonus)
