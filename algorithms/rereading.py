"""Rows that are read again after a context which their author did not have."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.batched_model import BatchedModel
from coterie.algorithms.batching import ReaderLogprobs
from coterie.algorithms.distillation import TokenSignal, describe_bonus, on_sampled, token_bonus
from coterie.datatypes import Trajectory

RowBonus = dict[int, Tensor]
"""Place of a row -> (N,) what reading it again adds to the advantages of its sampled tokens."""


@dataclass(frozen=True)
class Rereading:
    """Which weights read rows again, and how the difference is learned."""

    settings: Distillation
    batched: BatchedModel
    weights: Callable[[str], AbstractContextManager[None]]
    """While open, the model has the weights of that name: start, average or current."""

    def __call__(
        self, rows: Sequence[Trajectory], old: list[Tensor] | None, done: float
    ) -> tuple[TokenSignal, RowBonus, dict[str, float]]:
        """The signal of every row, the bonus of its sampled tokens, and metrics of both.

        Args:
            rows: of an update; those without ``reread_after`` are not read.
            old: the rows' log-probabilities, (T - 1,) each, where these are known.
            done: share of the run that is over, in [0, 1].
        """
        settings = self.settings.after(done)
        if not self.settings.beta:
            return TokenSignal(), {}, {}
        # Both contexts must fit, and hold a token before the first sampled one: nothing predicts a
        # first token.
        use = [i for i, r in enumerate(rows) if r.reread_after is not None and self._fits(r)]
        if not use or not settings.beta:
            return TokenSignal(), {}, {"distillation/rows": 0.0}
        row_bonus, readers = self._read(rows, use, old, settings)
        metrics = describe_bonus(settings, list(row_bonus.values()))
        share = {"distillation/rows": len(use) / len(rows)}
        return self._signal(rows, row_bonus, readers), row_bonus, share | metrics

    def _fits(self, row: Trajectory) -> bool:
        room, contexts = self.batched.model.context, (row, row.as_reread())
        return all(len(context.tokens) <= room and not context.mask[0] for context in contexts)

    def _read(
        self,
        rows: Sequence[Trajectory],
        use: Sequence[int],
        old: list[Tensor] | None,
        settings: Distillation,
    ) -> tuple[RowBonus, dict[int, ReaderLogprobs]]:
        """The bonus of each row in ``use``; and its reader, where the likeliest tokens count."""
        behind = [rows[i].as_reread() for i in use]
        read, readers = {}, {}
        with self.weights(settings.reader):
            if settings.likeliest:
                tokens = self.batched.likeliest(behind, settings.likeliest)
                for i, (ids_NK, logp_NK, logp_N) in zip(use, tokens, strict=True):
                    beta_N = logp_N.new_full(logp_N.shape, settings.beta)
                    read[i] = logp_N
                    readers[i] = ReaderLogprobs(ids_NK, logp_NK, beta_N, settings.bound)
            else:
                read = dict(
                    zip(use, on_sampled(behind, self.batched.logprobs(behind)), strict=True)
                )
        themselves = [rows[i] for i in use]
        if old is None:
            with self.weights("current"):
                own = self.batched.logprobs(themselves)
        else:
            own = [old[i] for i in use]
        own = on_sampled(themselves, own)
        return {i: token_bonus(settings, read[i], own_N) for i, own_N in zip(use, own)}, readers

    def _signal(
        self, rows: Sequence[Trajectory], row_bonus: RowBonus, readers: dict[int, ReaderLogprobs]
    ) -> TokenSignal:
        """Build the signal: from the likeliest tokens if there are readers, otherwise from the
        sampled ones."""
        if readers:
            return TokenSignal(readers=[readers.get(i) for i in range(len(rows))])
        bonus = [torch.zeros(len(row.tokens) - 1, device=self.batched.model.device) for row in rows]
        for i, bonus_N in row_bonus.items():
            bonus[i][torch.from_numpy(rows[i].mask[1:]).to(bonus_N.device)] = bonus_N
        return TokenSignal(bonus=bonus)
