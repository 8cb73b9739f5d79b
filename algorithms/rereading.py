"""Rows that are read again behind a context which their author did not have."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.batching import Reader, scored_tokens
from coterie.algorithms.distillation import Lesson, describe_bonus, on_sampled, token_bonus
from coterie.algorithms.scorer import Scorer
from coterie.datatypes import Trajectory

Floats = npt.NDArray[np.float64]
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
        self, rows: Sequence[Trajectory], old: list[Tensor] | None, advantages: Floats, done: float
    ) -> tuple[Lesson, Told, dict[str, float]]:
        """What is learned of every row; what its sampled tokens were told; and metrics of it.

        Args:
            old: the rows' log-probabilities, where these are known.
            done: share of the run that is over.
        """
        how = self.settings.after(done)
        if not self.settings.beta:
            return Lesson(), {}, {}
        # Those with which the model's context has room, and behind which as many tokens are scored:
        # behind nothing, or in a row without a prompt, the first one is not.
        use = [i for i, r in enumerate(rows) if r.reread_after is not None and self._fits(r)]
        if not use or not how.beta:
            return Lesson(), {}, {"distillation/rows": 0.0}
        told = dict(zip(use, self._told([rows[i] for i in use], use, old, advantages, how)))
        metrics = describe_bonus(how, list(told.values()), advantages[use])
        share = {"distillation/rows": len(use) / len(rows)}
        return self._lesson(rows, told, how), told, share | metrics

    def _fits(self, row: Trajectory) -> bool:
        room, scored = self.scorer.model.context, scored_tokens(row)
        behind = (row.as_reread(), row.as_contrast())
        return all(len(r.tokens) <= room and scored_tokens(r) == scored for r in behind)

    def _told(
        self,
        rows: Sequence[Trajectory],
        places: Sequence[int],
        old: list[Tensor] | None,
        advantages: Floats,
        how: Distillation,
    ) -> list[Tensor]:
        behind = [row.as_reread() for row in rows]
        # Those without a contrast are compared with themselves.
        alone = [place for place, row in enumerate(rows) if row.contrast_after is None]
        wrong = [row.as_contrast() for row in rows if row.contrast_after is not None]
        with self.weights(how.reader):
            found = self.scorer.logprobs(behind + wrong)
        read = on_sampled(behind + wrong, found)
        read, contrast = read[: len(rows)], iter(read[len(rows) :])
        themselves = [rows[place] for place in alone]
        if old is None:
            with self.weights("current"):
                own = self.scorer.logprobs(themselves)
        else:
            own = [old[places[place]] for place in alone]
        against = dict(zip(alone, on_sampled(themselves, own), strict=True))
        return [
            token_bonus(
                how, advantages[i], one, against[place] if place in against else next(contrast)
            )
            for place, (i, one) in enumerate(zip(places, read, strict=True))
        ]

    def _lesson(self, rows: Sequence[Trajectory], told: Told, how: Distillation) -> Lesson:
        """Of the sampled tokens, or of the likeliest, where a row has no contrast."""
        whole = [i for i in told if how.likeliest and rows[i].contrast_after is None]
        readers = dict(zip(whole, self._readers([rows[i].as_reread() for i in whole], how)))
        bonus = [torch.zeros(len(row.tokens) - 1, device=self.scorer.model.device) for row in rows]
        for i in told.keys() - readers.keys():
            bonus[i][torch.from_numpy(rows[i].mask[1:]).to(told[i].device)] = told[i]
        return Lesson(
            bonus=bonus if len(readers) < len(told) else (),
            readers=[readers.get(i) for i in range(len(rows))] if readers else (),
        )

    def _readers(self, rows: Sequence[Trajectory], how: Distillation) -> list[Reader]:
        if not rows:
            return []
        with self.weights(how.reader):
            found = self.scorer.likeliest(rows, how.likeliest)
        return [
            Reader(ids_NK, logp_NK, logp_NK.new_full((len(ids_NK),), how.beta), how.bound)
            for ids_NK, logp_NK in found
        ]
