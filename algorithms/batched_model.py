"""Log-probabilities of any number of rows under the current weights, without gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.algorithms.batching import Batch, capped_budget, micro_batches, pad, scored_tokens
from coterie.algorithms.distillation import TokenSignal
from coterie.algorithms.logprobs import TrainableModel, batch_likeliest, batch_logprobs
from coterie.cli.progress import Pulse
from coterie.datatypes import Trajectory

# N sampled tokens of a row, T tokens, K likeliest tokens


@dataclass(frozen=True)
class BatchedModel:
    """A model with its token budget for one forward pass."""

    model: TrainableModel
    budget: int
    """Tokens of a micro-batch."""
    temperature: float
    pulse: Pulse | None = None
    """Counts rows whose probabilities are computed."""

    def micro_batches(self, rows: Sequence[Trajectory], use: Sequence[int]) -> list[list[int]]:
        """Divide the row indices ``use`` into micro-batches that fit the budget."""
        ranks, longest = self.model.ranks, max((len(rows[i].tokens) for i in use), default=0)
        budget = capped_budget(self.budget, longest, self.model.uncheckpointed_tokens)
        if ranks.size > 1:
            # Every rank needs rows to compute.
            budget = min(budget, -(-sum(len(rows[i].tokens) for i in use) // ranks.size))
        groups = micro_batches([rows[i] for i in use], budget, shares_from=self.model.shares_from)
        return [[use[i] for i in group] for group in groups]

    def pad(
        self,
        rows: Sequence[Trajectory],
        chosen: Sequence[int],
        advantages: npt.NDArray[np.float64] | None = None,
        signal: TokenSignal | None = None,
    ) -> Batch:
        """Pad the rows with the indices ``chosen`` to one batch.

        Args:
            rows: all rows of an update.
            chosen: indices into ``rows``.
            advantages: one for each of ``rows``; None: 0.
            signal: additions to token advantages; None: there are none.
        """
        signals = signal or TokenSignal()
        return pad(
            [rows[i] for i in chosen],
            np.zeros(len(chosen)) if advantages is None else advantages[chosen],
            self.model.device,
            [signals.bonus[i] for i in chosen] if signals.bonus else None,
            [signals.readers[i] for i in chosen] if signals.readers else (),
        )

    @torch.no_grad()
    def logprobs(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        """Return the log-probability of every token but the first, (T - 1,) for each row."""
        out = [torch.zeros(len(row.tokens) - 1, device=self.model.device) for row in rows]
        for chosen, counts in self._shares(rows):
            batch = self.pad(rows, chosen)
            logp_BT, _, _ = batch_logprobs(self.model, batch, temperature=self.temperature)
            if counts:
                for i, row in zip(chosen, logp_BT):
                    out[i] = row[: len(rows[i].tokens) - 1].clone()
                self._count(chosen)
        return self.model.ranks.exchange(out)

    @torch.no_grad()
    def likeliest(
        self, rows: Sequence[Trajectory], count: int, width: int | None = None
    ) -> list[tuple[Tensor, ...]]:
        """Return three tensors for each row, at its N sampled tokens: ids of the likeliest next
        tokens (N, K), their log-probabilities (N, K), and those of the sampled tokens (N,). K is
        ``count``, or the size of the vocabulary if that is smaller. Ids are below ``width``, if it
        is given."""
        sizes = [scored_tokens(row) for row in rows]
        by_index: dict[int, Sequence[Tensor]] = {}
        top: Sequence[Tensor] = ()
        for chosen, counts in self._shares(rows):
            batch = self.pad(rows, chosen)
            top = batch_likeliest(
                self.model, batch, count, temperature=self.temperature, width=width
            )
            if counts:
                parts = zip(*(tensor.split([sizes[i] for i in chosen]) for tensor in top))
                by_index |= dict(zip(chosen, parts))
                self._count(chosen)
        # Rows of other ranks are 0 until the exchange below.
        for i in set(range(len(rows))) - by_index.keys():
            by_index[i] = [tensor.new_zeros(sizes[i], *tensor.shape[1:]) for tensor in top]
        columns = zip(*(by_index[i] for i in range(len(rows))))
        return list(zip(*(self.model.ranks.exchange(list(column)) for column in columns)))

    def _count(self, chosen: Sequence[int]) -> None:
        if self.pulse is not None:
            self.pulse.add(len(chosen))

    def _shares(self, rows: Sequence[Trajectory]) -> list[tuple[list[int], bool]]:
        """This rank's micro-batches, and whether each counts (:meth:`Ranks.share`)."""
        return self.model.ranks.share(self.micro_batches(rows, range(len(rows))))
