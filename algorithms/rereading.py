"""Rereading: rows are scored again after a context that their author did not have."""

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
"""Index of a row -> (N,) what rereading adds to the advantages of its sampled tokens."""


@dataclass(frozen=True)
class Rereading:
    """Rereads rows and turns the differences into additions to token advantages."""

    settings: Distillation
    batched: BatchedModel
    weights: Callable[[str], AbstractContextManager[None]]
    """Uses the weights of a name inside the block: start, average or current."""

    def __call__(
        self, rows: Sequence[Trajectory], old: list[Tensor] | None, done: float
    ) -> tuple[TokenSignal, RowBonus, dict[str, float]]:
        """Return the signal of all rows, the bonus of their sampled tokens, and metrics.

        Args:
            rows: the rows of an update; those without ``reread_after`` are not reread.
            old: the rows' log-probabilities, (T - 1,) each; None: they are computed.
            done: completed share of the run, in [0, 1].
        """
        settings = self.settings.after(done)
        if not self.settings.beta:
            return TokenSignal(), {}, {}
        use = [i for i, r in enumerate(rows) if r.reread_after is not None and self._fits(r)]
        if not use or not settings.beta:
            return TokenSignal(), {}, {"distillation/rows": 0.0}
        row_bonus, readers = self._read(rows, use, old, settings)
        metrics = describe_bonus(settings, list(row_bonus.values()))
        share = {"distillation/rows": len(use) / len(rows)}
        return self._signal(rows, row_bonus, readers), row_bonus, share | metrics

    def _fits(self, row: Trajectory) -> bool:
        # A sampled first token cannot be scored: no earlier position predicts it.
        room, contexts = self.batched.model.context, (row, row.as_reread())
        return all(len(context.tokens) <= room and not context.mask[0] for context in contexts)

    def _read(
        self,
        rows: Sequence[Trajectory],
        use: Sequence[int],
        old: list[Tensor] | None,
        settings: Distillation,
    ) -> tuple[RowBonus, dict[int, ReaderLogprobs]]:
        """The bonus of each row in ``use``, and its reader if the likeliest tokens count."""
        reread = [rows[i].as_reread() for i in use]
        read, readers = {}, {}
        with self.weights(settings.reader):
            if settings.likeliest:
                tokens = self.batched.likeliest(reread, settings.likeliest)
                for i, (ids_NK, logp_NK, logp_N) in zip(use, tokens, strict=True):
                    beta_N = logp_N.new_full(logp_N.shape, settings.beta)
                    read[i] = logp_N
                    readers[i] = ReaderLogprobs(ids_NK, logp_NK, beta_N, settings.bound)
            else:
                read = dict(
                    zip(use, on_sampled(reread, self.batched.logprobs(reread)), strict=True)
                )
        originals = [rows[i] for i in use]
        if old is None:
            with self.weights("current"):
                own = self.batched.logprobs(originals)
        else:
            own = [old[i] for i in use]
        own = on_sampled(originals, own)
        return {i: token_bonus(settings, read[i], own_N) for i, own_N in zip(use, own)}, readers

    def _signal(
        self, rows: Sequence[Trajectory], row_bonus: RowBonus, readers: dict[int, ReaderLogprobs]
    ) -> TokenSignal:
        if readers:
            return TokenSignal(readers=[readers.get(i) for i in range(len(rows))])
        bonus = [torch.zeros(len(row.tokens) - 1, device=self.batched.model.device) for row in rows]
        for i, bonus_N in row_bonus.items():
            bonus[i][torch.from_numpy(rows[i].mask[1:]).to(bonus_N.device)] = bonus_N
        return TokenSignal(bonus=bonus)
