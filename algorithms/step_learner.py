"""A learner's training step, wherever the weights are: which rows enter it, in what order, and what
it reports.

Legend: B rows, T tokens.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.batching import by_agent, scored_tokens, split_evenly
from coterie.algorithms.credit import Floats
from coterie.algorithms.distillation import TokenSignal, on_all_tokens
from coterie.algorithms.nonfinite import PATIENCE, NotFinite
from coterie.algorithms.objective import SUMS, describe
from coterie.algorithms.rereading import Rereading
from coterie.algorithms.settings import LearnerSettings, lr_factor, warmup_steps
from coterie.algorithms.turn_credit import TurnBonus, by_token
from coterie.datatypes import Trajectory, UserError

NO_SIGNAL = TokenSignal()


class LearningModel(Protocol):
    """What a training step needs to know of a role's model."""

    version: int
    """Number of updates so far; the learner increments it."""

    @property
    def device(self) -> torch.device:
        """The device of log-probabilities."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """Use this role's weights inside the block."""
        ...


class StepLearner(ABC):
    """Applies an algorithm's loss to the rows of one role. A subclass has the weights: it computes
    log-probabilities and gradients, and takes optimizer steps."""

    _rereading: Rereading

    def __init__(
        self,
        model: LearningModel,
        algorithm: Algorithm,
        settings: LearnerSettings,
        temperature: float,
        total_steps: int | None,
    ) -> None:
        """For the arguments and errors see :class:`coterie.algorithms.learner.Learner`."""
        if total_steps is None and (settings.needs_total or algorithm.distillation.fade):
            raise UserError(
                "learner.schedule, a share as learner.warmup and algo.distillation.fade need the "
                "number of steps: give total_steps"
            )
        self.model = model
        self.algorithm = algorithm
        self.settings = settings
        self._temperature = temperature or 1.0
        self._total = total_steps
        self._lr = settings.lr
        """Learning rate of the latest optimizer step."""
        self.token_bonus: dict[int, Floats] = {}
        """Index of a trajectory in the latest update -> (T,) additions to the advantages of its
        tokens, from rereading and from turn rewards."""
        self._updates = 0
        """Calls of :meth:`update`, one in each training step. Schedules follow the steps of the
        run, so a step without rows counts."""
        self._skipped = 0
        """Optimizer steps that were skipped because a loss or gradient was not finite."""
        self._lost = 0
        """Consecutive fully skipped training steps."""

    # Where the weights are

    @abstractmethod
    def _snapshot(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        """Each row's log-probabilities under the current weights, (T - 1,)."""

    @abstractmethod
    def _reference(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        """Each row's log-probabilities under the weights before training, (T - 1,)."""

    @abstractmethod
    def _gradient(
        self,
        rows: Sequence[Trajectory],
        advantages: Floats,
        old: list[Tensor] | None,
        ref: list[Tensor] | None,
        part: Sequence[int],
        signal: TokenSignal = NO_SIGNAL,
    ) -> tuple[float, Tensor, Tensor]:
        """Compute the gradient of one optimizer step; return loss, sums, peaks."""

    @abstractmethod
    def _step(self, loss: float, done: float) -> float:
        """Take an optimizer step if loss and gradient are finite; return the gradient's norm."""

    @abstractmethod
    def _finite_weights(self) -> bool: ...

    @abstractmethod
    def _why_lost(
        self,
        rows: Sequence[Trajectory],
        advantages: Floats,
        old: list[Tensor] | None,
        ref: list[Tensor] | None,
        signal: TokenSignal,
    ) -> NotFinite:
        """The error after too many training steps without a finite gradient."""

    def _after_update(self) -> None:  # noqa: B027
        """Called after each update."""

    # The training step

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantage_B: npt.ArrayLike,
        turn_bonus: TurnBonus = MappingProxyType({}),
    ) -> dict[str, float]:
        """Train on this role's rows of one training step; return metrics.

        Rows that are not trainable are ignored. Without trainable rows no weight changes, but the
        step counts in schedules. Optimizer steps whose loss or gradient is not finite are skipped
        and counted.

        Args:
            trajectories: the rows.
            advantage_B: (B,) the advantage of each row.
            turn_bonus: index of a row -> (turns,) additions for the tokens of each turn.

        Raises:
            NotFinite: three consecutive training steps were fully skipped, or the weights are not
                finite after this one.
        """
        self.token_bonus = {}
        advantages = np.asarray(advantage_B, np.float64)
        learned = [t.as_learned() for t in trajectories]
        use = [i for i, t in enumerate(learned) if t.trainable and scored_tokens(t)]
        rows, advantages = [learned[i] for i in use], advantages[use]
        if not rows:
            self._updates += 1
            return {**_counts(rows, self.model.version), "skipped_steps": float(self._skipped)}
        several = self.settings.optimizer_steps > 1
        with self.model.active():
            old = self._snapshot(rows) if several else None
        ref = self._reference(rows) if self.algorithm.kl_coefficient else None
        done = self._updates / (self._total or 1)
        signal, reread_bonus, reread_metrics = self._rereading(rows, old, done)
        self.token_bonus = {
            use[i]: on_all_tokens(trajectories[use[i]], bonus_N)
            for i, bonus_N in reread_bonus.items()
        }
        if turn_bonus:
            signal = self._with_turn_bonus(signal, trajectories, rows, use, turn_bonus)
        counts, skipped_before = _counts(rows, self.model.version), self._skipped
        sums, peaks, losses, norms = torch.zeros(len(SUMS)), torch.zeros(2), [], []
        with self.model.active():
            for step, part in enumerate(self._parts(rows)):
                loss, more, peak = self._gradient(rows, advantages, old, ref, part, signal)
                sums, peaks = sums + more, torch.maximum(peaks, peak)
                losses.append(loss)
                norms.append(self._step(loss, self._updates + step / self.settings.optimizer_steps))
            fully_skipped = self._skipped - skipped_before == len(losses)
            self._lost = self._lost + 1 if fully_skipped else 0
            if not self._finite_weights():
                raise NotFinite("its weights are not finite after this update")
            if self._lost >= PATIENCE:
                raise self._why_lost(rows, advantages, old, ref, signal)
        self._updates += 1
        if not fully_skipped:
            self.model.version += 1
        self._after_update()
        return {
            "loss": sum(losses) / len(losses),
            "grad_norm": max(norms, key=lambda norm: (not math.isfinite(norm), norm)),
            "lr": self._lr,
            **describe(sums, peaks),
            **reread_metrics,
            **counts,
            "skipped_steps": float(self._skipped),
        }

    def _with_turn_bonus(
        self,
        signal: TokenSignal,
        trajectories: Sequence[Trajectory],
        rows: Sequence[Trajectory],
        use: Sequence[int],
        turn_bonus: TurnBonus,
    ) -> TokenSignal:
        """Add turn rewards to the signal of ``rows`` and to ``token_bonus``; ``use`` has the index
        of each row in ``trajectories``."""
        device = self.model.device
        bonuses = [by_token(row, turn_bonus.get(i))[1:] for i, row in zip(use, rows)]
        for i in use:
            if i in turn_bonus:
                bonus_T = by_token(trajectories[i], turn_bonus[i])
                self.token_bonus[i] = bonus_T + self.token_bonus.get(i, 0.0)
        return signal.plus([torch.from_numpy(b.astype(np.float32)).to(device) for b in bonuses])

    def divergences(self, trajectories: Sequence[Trajectory]) -> Floats:
        """Return each row's sum of log pi - log pi_ref over its sampled tokens, (B,), under the
        current weights; 0 for rows that are not trainable. The algorithm must have a reference."""
        use = [i for i, t in enumerate(trajectories) if t.trainable and scored_tokens(t)]
        rows, out_B = [trajectories[i] for i in use], np.zeros(len(trajectories))
        if rows:
            with self.model.active():
                now = self._snapshot(rows)
            for i, row, new, ref in zip(use, rows, now, self._reference(rows)):
                out_B[i] = float((new - ref)[torch.from_numpy(row.mask[1:]).to(new.device)].sum())
        return out_B

    def _rate(self, done: float) -> float:
        """The learning rate of the optimizer step that follows ``done`` training steps."""
        self._lr = self.settings.lr * lr_factor(
            done,
            self.settings.schedule,
            warmup=warmup_steps(self.settings.warmup, self._total),
            total=self._total,
            step=1 / self.settings.optimizer_steps,
        )
        return self._lr

    def _parts(self, rows: Sequence[Trajectory]) -> Iterator[list[int]]:
        """Yield the row indices of each optimizer step; an agent's rows stay together."""
        agents = by_agent(rows)
        for _ in range(self.settings.epochs):
            for part in split_evenly(len(agents), self.settings.minibatches):
                yield sorted(row for agent in part for row in agents[agent])

    def _busy(self, part: Sequence[int], advantages: Floats, signal: TokenSignal) -> list[int]:
        """Select the rows of ``part`` that can change the gradient."""
        algorithm = self.algorithm
        # A loss of one's own may have terms without an advantage, as a penalty has.
        penalised = algorithm.kl_coefficient or algorithm.entropy_coefficient
        if penalised or algorithm.has_custom_surrogate or not self.settings.skip_idle_rows:
            return list(part)
        return [i for i in part if advantages[i] or signal.covers(i)]


def _counts(rows: Sequence[Trajectory], version: int) -> dict[str, float]:
    return {
        "rows": float(len(rows)),
        "tokens": float(sum(scored_tokens(t) for t in rows)),
        "staleness": float(max((version - t.weight_version for t in rows), default=0)),
    }
