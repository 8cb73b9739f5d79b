"""The only part of the algorithms with a state: one role's optimiser and schedule.

Legend: B rows, T tokens.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.agents.models.shards import gather, shard_as, whole
from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.batched_model import BatchedModel
from coterie.algorithms.batching import Batch, by_agent, scored_tokens, split_evenly
from coterie.algorithms.credit import Floats
from coterie.algorithms.distillation import TokenSignal, by_trajectory
from coterie.algorithms.logprobs import TrainableModel, batch_logprobs
from coterie.algorithms.nonfinite import PATIENCE, NotFinite, cause_of
from coterie.algorithms.objective import SUMS, Totals, describe, objective
from coterie.algorithms.optimizer_state import (
    load_moments,
    make_optimizer,
    reached,
    save_moments,
    swap,
)
from coterie.algorithms.rereading import Rereading
from coterie.algorithms.settings import LearnerSettings, lr_factor, warmup_steps
from coterie.algorithms.turn_credit import TurnBonus, by_token
from coterie.cli.progress import LEARNED
from coterie.datatypes import Trajectory, UserError

_NO_SIGNAL = TokenSignal()


class Learner:
    """Applies an algorithm's loss to one role's own rows."""

    def __init__(
        self,
        model: TrainableModel,
        algorithm: Algorithm,
        settings: LearnerSettings,
        *,
        temperature: float = 1.0,
        total_steps: int | None = None,
        moves_first: bool = False,
    ) -> None:
        """Args:
            temperature: what rows are sampled at; the learner's logits are divided by it. Greedy
                rows (0) carry log-probabilities at temperature 1.
            total_steps: training steps of the whole run, for schedules.
            moves_first: the weights change before training begins, which :meth:`begin` says.

        Raises:
            UserError: a schedule needs ``total_steps``, or nothing is trainable.
        """
        if total_steps is None and (settings.needs_total or algorithm.distillation.fade):
            raise UserError(
                "learner.schedule, a share as learner.warmup and algo.distillation.fade need the "
                "number of steps"
            )
        self.model = model
        self.algorithm = algorithm
        self.settings = settings
        self._temperature = temperature or 1.0
        self._total = total_steps
        self._ranks = model.ranks
        self._batched = BatchedModel(model, settings.micro_batch_tokens, self._temperature)
        self._rereading = Rereading(algorithm.distillation, self._batched, self._as)
        self._parameters = model.parameters()
        if not self._parameters:
            raise UserError("this model has no trainable parameters; a frozen role has no learner")
        self._optimizer = make_optimizer(list(self._parameters.values()), settings)
        self._start = self._frozen_start(copied=moves_first)
        self._average: dict[str, Tensor] | None = None
        """The average of past weights, where it reads rows again."""
        if algorithm.distillation.beta and algorithm.distillation.reader == "average":
            self._average = {name: p.detach().clone() for name, p in self._parameters.items()}
        self.token_bonus: dict[int, Floats] = {}
        """``id`` of a trajectory that the newest update read again, or whose turns are paid by
        themselves -> (T,) what that added to the advantage of each of its tokens."""
        self._updates = 0
        """Calls of :meth:`update` that had rows."""
        self._skipped = 0
        """Optimizer steps left out because of a loss or gradient that was not finite."""
        self._lost = 0
        """Training steps running of which all were left out."""

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantage_B: npt.ArrayLike,
        turn_bonus: TurnBonus = MappingProxyType({}),
    ) -> dict[str, float]:
        """Train on this role's rows of one training step; return metrics.

        Args:
            trajectories: the rows.
            advantage_B: the advantage of each.
            turn_bonus: place of a row -> (turns,) what is added for the tokens of each turn.

        Rows that are not trainable never enter; without any other row, nothing happens. An
        optimizer step whose loss or gradient is not finite is left out and counted.

        Raises:
            NotFinite: the third training step running of which nothing was left, or one after
                which the weights themselves are not finite.
        """
        self.token_bonus, model = {}, self.model
        advantages = np.asarray(advantage_B, np.float64)
        learned = [t.as_learned() for t in trajectories]
        use = [i for i, t in enumerate(learned) if t.trainable and scored_tokens(t)]
        rows, advantages = [learned[i] for i in use], advantages[use]
        if not rows:
            return {**_counts(rows, self.model.version), "skipped_steps": float(self._skipped)}
        several = self.settings.optimizer_steps > 1
        with self.model.active():
            old = self._snapshot(rows) if several else None
        ref = self._reference(rows) if self.algorithm.kl_coefficient else None
        done = self._updates / (self._total or 1)
        signal, row_bonus, read = self._rereading(rows, old, done)
        self.token_bonus = by_trajectory([trajectories[i] for i in use], row_bonus)
        if turn_bonus:
            paid = [turn_bonus.get(i) for i in use]
            signal = signal.plus(
                [
                    torch.from_numpy(by_token(row, own)[1:].astype(np.float32)).to(model.device)
                    for row, own in zip(rows, paid)
                ]
            )
            for row, own in zip((trajectories[i] for i in use), paid):
                if own is not None:
                    self.token_bonus[id(row)] = by_token(row, own) + self.token_bonus.get(
                        id(row), 0.0
                    )
        counts, skipped = _counts(rows, self.model.version), self._skipped
        sums, peaks, losses, norms = torch.zeros(len(SUMS)), torch.zeros(2), [], []
        with self.model.active():
            for step, part in enumerate(self._parts(rows)):
                loss, more, peak = self._gradient(rows, advantages, old, ref, part, signal)
                sums, peaks = sums + more, torch.maximum(peaks, peak)
                losses.append(loss)
                norms.append(self._step(loss, self._updates + step / self.settings.optimizer_steps))
            self._lost = self._lost + 1 if self._skipped - skipped == len(losses) else 0
            if not self._finite_weights():
                raise NotFinite("its weights are not finite after this update")
            if self._lost >= PATIENCE:

                def alone(place: int) -> tuple[float, float]:
                    part = range(place, place + 1)
                    loss, _, _ = self._gradient(rows, advantages, old, ref, part, signal)
                    norm = float(self._norm())
                    self._optimizer.zero_grad()
                    return loss, norm

                raise cause_of(rows, advantages.tolist(), alone)
        self._updates += 1
        self.model.version += self._lost == 0
        for name, past in (self._average or {}).items():
            past.lerp_(
                self._parameters[name].detach().to(past), 1 - self.algorithm.distillation.decay
            )
        return {
            "loss": sum(losses) / len(losses),
            "grad_norm": max(norms, key=lambda norm: (not math.isfinite(norm), norm)),
            "lr": float(self._optimizer.param_groups[0]["lr"]),
            **describe(sums, peaks),
            **read,
            **counts,
            "skipped_steps": float(self._skipped),
        }

    def begin(self) -> None:
        """Count the weights of this moment as those from before training."""
        for kept in self._kept().values():
            for name, value in kept.items():
                value.copy_(self._parameters[name].detach())

    def divergences(self, trajectories: Sequence[Trajectory]) -> Floats:
        """(B,) each row's sum of log pi - log pi_ref over its own tokens, under the weights of this
        moment; 0 for rows that are not trainable. Needs an algorithm that has a reference."""
        use = [i for i, t in enumerate(trajectories) if t.trainable and scored_tokens(t)]
        rows, out_B = [trajectories[i] for i in use], np.zeros(len(trajectories))
        if rows:
            with self.model.active():
                now = self._snapshot(rows)
            for i, row, new, ref in zip(use, rows, now, self._reference(rows)):
                out_B[i] = float((new - ref)[torch.from_numpy(row.mask[1:]).to(new.device)].sum())
        return out_B

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors by name, and plain JSON data; with the weights, all that an update depends on.
        The tensors are the learner's own: a device has no room for them twice."""
        tensors, steps = save_moments(self._optimizer, self._parameters)
        for kind, kept in self._kept().items():
            tensors |= gather({f"{kind}/{name}": value for name, value in kept.items()})
        counted = {"updates": self._updates, "skipped": self._skipped, "lost": self._lost}
        return tensors, {"steps": steps, **counted, "version": self.model.version}

    def load_state_dict(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` gave.

        Args:
            tensors: by name; they are copied.
            plain: its JSON data.
        """
        load_moments(self._optimizer, self._parameters, tensors, plain["steps"])
        for kind, kept in self._kept().items():
            for name, value in kept.items():
                value.copy_(shard_as(tensors[f"{kind}/{name}"], value))
        self._updates, self._skipped = int(plain["updates"]), int(plain["skipped"])
        self._lost = int(plain["lost"])
        self.model.version = int(plain["version"])

    def _kept(self) -> dict[str, dict[str, Tensor]]:
        """Copies of past weights by kind: the reference, the average."""
        return {"reference": self._start or {}, "average": self._average or {}}

    def reached(self) -> Iterator[tuple[str, Tensor]]:
        """Parameter name -> which of its weights a gradient has reached so far (bool)."""
        for name, parameter in self._parameters.items():
            if (reached_weights := reached(self._optimizer, parameter)) is not None:
                yield name, reached_weights

    def _parts(self, rows: Sequence[Trajectory]) -> Iterator[list[int]]:
        """The rows of each optimizer step of one training step, those of an agent together."""
        agents = by_agent(rows)
        for _ in range(self.settings.epochs):
            for part in split_evenly(len(agents), self.settings.minibatches):
                yield sorted(place for agent in part for place in agents[agent])

    def _gradient(
        self,
        rows: Sequence[Trajectory],
        advantages: Floats,
        old: list[Tensor] | None,
        ref: list[Tensor] | None,
        part: Sequence[int],
        signal: TokenSignal = _NO_SIGNAL,
    ) -> tuple[float, Tensor, Tensor]:
        """Leave the gradient of one optimizer step on the parameters; return its loss and sums."""
        algorithm, settings = self.algorithm, self.settings
        agents = by_agent([rows[i] for i in part])
        totals = Totals(len(agents), sum(scored_tokens(rows[i]) for i in part))
        own = {}
        for agent in agents:
            tokens = sum(scored_tokens(rows[part[place]]) for place in agent)
            own |= {part[place]: float(tokens) for place in agent}
        sums, peaks, loss = torch.zeros(len(SUMS)), torch.zeros(2), torch.zeros(())
        self._optimizer.zero_grad()
        busy = self._busy(part, advantages, signal)
        LEARNED.add((len(part) - len(busy)) / settings.epochs)
        groups = self._batched.micro_batches(rows, busy)
        for chosen, counts in self._ranks.share(groups):
            batch = self._batched.pad(rows, chosen, advantages, signal)
            logp_BT, entropy_BT, gain_BT = batch_logprobs(
                self.model,
                batch,
                temperature=self._temperature,
                entropy_gradient=algorithm.entropy_coefficient != 0,
            )
            share = objective(
                logp_BT,
                entropy_BT,
                logp_BT.detach() if old is None else _stack(old, chosen, batch),
                None if ref is None else _stack(ref, chosen, batch),
                batch,
                algorithm,
                totals,
                agent_tokens_B=torch.tensor([own[i] for i in chosen], device=logp_BT.device),
                gain_BT=gain_BT,
                correction=settings.importance_correction,
                cap=settings.importance_cap,
            )
            (share.loss if counts else 0 * share.loss).backward()
            LEARNED.add(len(chosen) / settings.epochs)
            if not counts:
                continue
            loss = loss + share.loss.detach().cpu()
            sums = sums + share.sums.cpu()
            peaks = torch.maximum(peaks, share.peaks.cpu())
        ranks = self._ranks
        return float(ranks.add(loss)), ranks.add(sums), ranks.largest(peaks)

    def _step(self, loss: float, done: float) -> float:
        """One optimizer step, unless loss or gradient is not finite; gives the gradient's norm."""
        norm_tensor = self._norm()
        norm = float(norm_tensor)
        factor = lr_factor(
            done,
            self.settings.schedule,
            warmup=warmup_steps(self.settings.warmup, self._total),
            total=self._total,
            step=1 / self.settings.optimizer_steps,
        )
        self._optimizer.param_groups[0]["lr"] = self.settings.lr * factor
        if math.isfinite(loss) and math.isfinite(norm):
            torch.nn.utils.clip_grads_with_norm_(
                self._parameters.values(), self.settings.max_grad_norm, norm_tensor
            )
            self._optimizer.step()
        else:
            self._skipped += 1
        self._optimizer.zero_grad()
        return norm

    def _norm(self) -> Tensor:
        """The norm of the whole gradient."""
        gradients = []
        for parameter in self._parameters.values():
            if parameter.grad is None:
                # A parameter's moments decay in each step, whatever reached it.
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        return whole(torch.nn.utils.get_total_norm(gradients))

    def _finite_weights(self) -> bool:
        weights = [parameter.detach() for parameter in self._parameters.values()]
        return math.isfinite(float(whole(torch.nn.utils.get_total_norm(weights))))

    def _busy(self, part: Sequence[int], advantages: Floats, signal: TokenSignal) -> list[int]:
        """The rows of ``part`` that can change the gradient."""
        regularised = self.algorithm.kl_coefficient or self.algorithm.entropy_coefficient
        if regularised or not self.settings.skip_idle_rows:
            return list(part)
        return [i for i in part if advantages[i] or signal.covers(i)]

    def _snapshot(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        """Each row's log-probabilities under the weights of this moment."""
        return self._batched.logprobs(rows)

    @contextmanager
    def _as(self, when: str) -> Iterator[None]:
        """While open, the model has its weights from before training (``start``), the average of
        its past weights (``average``), or its current ones."""
        if when == "start" and self._start is None:
            with self.model.reference():
                yield
        else:
            other = {"start": self._start, "average": self._average}.get(when)
            with self.model.active(), swap(self._parameters, other or {}):
                yield

    def _reference(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        with self._as("start"):
            return self._snapshot(rows)

    def _frozen_start(self, *, copied: bool) -> dict[str, Tensor] | None:
        """A copy of the parameters, where a reference is needed and the model keeps none, or where
        it must be ``copied``."""
        if not self.algorithm.needs_reference:
            return None
        if not copied:
            with suppress(NotImplementedError), self.model.reference():
                return None
        return {name: p.detach().clone() for name, p in self._parameters.items()}


def _counts(rows: Sequence[Trajectory], version: int) -> dict[str, float]:
    return {
        "rows": float(len(rows)),
        "tokens": float(sum(scored_tokens(t) for t in rows)),
        "staleness": float(max((version - t.weight_version for t in rows), default=0)),
    }


def _stack(values: list[Tensor], chosen: list[int], batch: Batch) -> Tensor:
    """(B, T - 1) rows of ``values``, padded with 0."""
    padded = torch.nn.utils.rnn.pad_sequence([values[i] for i in chosen], batch_first=True)
    assert padded.shape == batch.mask_BT.shape
    return padded
