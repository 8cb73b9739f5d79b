"""The learner: one role's optimizer and schedule, and the only algorithm code that has state.

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
from coterie.algorithms.distillation import TokenSignal, on_all_tokens
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
    """Applies an algorithm's loss to the rows of one role."""

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
            temperature: sampling temperature of the rows; logits are divided by it. Greedy rows (0)
                carry log-probabilities at temperature 1.
            total_steps: training steps of the whole run, for schedules.
            moves_first: the weights change before training begins, as in imitation; :meth:`begin`
                marks the end of that.

        Raises:
            UserError: a schedule needs ``total_steps``, or the model has no trainable parameters.
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
        self._rereading = Rereading(algorithm.distillation, self._batched, self._with_weights)
        self._parameters = model.parameters()
        if not self._parameters:
            raise UserError("this model has no trainable parameters; a frozen role has no learner")
        self._optimizer = make_optimizer(list(self._parameters.values()), settings)
        self._start = self._copy_of_start(always=moves_first)
        self._average: dict[str, Tensor] | None = None
        """Moving average of the weights, if it rereads rows."""
        if algorithm.distillation.averages:
            self._average = {name: p.detach().clone() for name, p in self._parameters.items()}
        self.token_bonus: dict[int, Floats] = {}
        """Index of a trajectory in the latest update -> (T,) additions to the advantages of its
        tokens, from rereading and from turn rewards."""
        self._updates = 0
        """Calls of :meth:`update` that had rows."""
        self._skipped = 0
        """Optimizer steps that were skipped because a loss or gradient was not finite."""
        self._lost = 0
        """Consecutive fully skipped training steps."""

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantage_B: npt.ArrayLike,
        turn_bonus: TurnBonus = MappingProxyType({}),
    ) -> dict[str, float]:
        """Train on this role's rows of one training step; return metrics.

        Rows that are not trainable are ignored. Without trainable rows nothing happens. Optimizer
        steps whose loss or gradient is not finite are skipped and counted.

        Args:
            trajectories: the rows.
            advantage_B: the advantage of each row.
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

                def loss_and_norm(row: int) -> tuple[float, float]:
                    loss, _, _ = self._gradient(rows, advantages, old, ref, [row], signal)
                    norm = float(self._norm())
                    self._optimizer.zero_grad()
                    return loss, norm

                raise cause_of(rows, advantages.tolist(), loss_and_norm)
        self._updates += 1
        if not fully_skipped:
            self.model.version += 1
        for name, past in (self._average or {}).items():
            past.lerp_(
                self._parameters[name].detach().to(past), 1 - self.algorithm.distillation.decay
            )
        return {
            "loss": sum(losses) / len(losses),
            "grad_norm": max(norms, key=lambda norm: (not math.isfinite(norm), norm)),
            "lr": float(self._optimizer.param_groups[0]["lr"]),
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

    def begin(self) -> None:
        """Make the current weights the start of training."""
        for copy in self._copies().values():
            for name, value in copy.items():
                value.copy_(self._parameters[name].detach())

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

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors by name and JSON data. Together with the weights, an update depends on
        nothing else. The tensors are not copied, because a device has no room for them twice."""
        tensors, steps = save_moments(self._optimizer, self._parameters)
        for kind, copy in self._copies().items():
            tensors |= gather({f"{kind}/{name}": value for name, value in copy.items()})
        counted = {"updates": self._updates, "skipped": self._skipped, "lost": self._lost}
        return tensors, {"steps": steps, **counted, "version": self.model.version}

    def load_state_dict(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned.

        Args:
            tensors: by name; they are copied.
            plain: the JSON data.
        """
        load_moments(self._optimizer, self._parameters, tensors, plain["steps"])
        for kind, copy in self._copies().items():
            for name, value in copy.items():
                value.copy_(shard_as(tensors[f"{kind}/{name}"], value))
        self._updates, self._skipped = int(plain["updates"]), int(plain["skipped"])
        self._lost = int(plain["lost"])
        self.model.version = int(plain["version"])

    def _copies(self) -> dict[str, dict[str, Tensor]]:
        """Copies of past weights by kind: the reference and the average."""
        return {"reference": self._start or {}, "average": self._average or {}}

    def reached(self) -> Iterator[tuple[str, Tensor]]:
        """Yield (parameter name, mask of the weights that a gradient has reached so far)."""
        for name, parameter in self._parameters.items():
            if (mask := reached(self._optimizer, parameter)) is not None:
                yield name, mask

    def _parts(self, rows: Sequence[Trajectory]) -> Iterator[list[int]]:
        """Yield the row indices of each optimizer step; an agent's rows stay together."""
        agents = by_agent(rows)
        for _ in range(self.settings.epochs):
            for part in split_evenly(len(agents), self.settings.minibatches):
                yield sorted(row for agent in part for row in agents[agent])

    def _gradient(
        self,
        rows: Sequence[Trajectory],
        advantages: Floats,
        old: list[Tensor] | None,
        ref: list[Tensor] | None,
        part: Sequence[int],
        signal: TokenSignal = _NO_SIGNAL,
    ) -> tuple[float, Tensor, Tensor]:
        """Leave the gradient of one optimizer step on the parameters; return loss, sums, peaks."""
        algorithm, settings = self.algorithm, self.settings
        agents = by_agent([rows[i] for i in part])
        totals = Totals(len(agents), sum(scored_tokens(rows[i]) for i in part))
        agent_tokens: dict[int, float] = {}
        for agent in agents:
            tokens = sum(scored_tokens(rows[part[i]]) for i in agent)
            agent_tokens |= {part[i]: float(tokens) for i in agent}
        sums, peaks, loss = torch.zeros(len(SUMS)), torch.zeros(2), torch.zeros(())
        self._optimizer.zero_grad()
        busy = self._busy(part, advantages, signal)
        LEARNED.add((len(part) - len(busy)) / settings.epochs)
        micro_batches = self._batched.micro_batches(rows, busy)
        for chosen, counts in self._ranks.share(micro_batches):
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
                agent_tokens_B=torch.tensor(
                    [agent_tokens[i] for i in chosen], device=logp_BT.device
                ),
                gain_BT=gain_BT,
                correction=settings.importance_correction,
                cap=settings.importance_cap,
            )
            # Every rank runs the same number of backward passes; surplus ones add nothing.
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
        """Take an optimizer step if loss and gradient are finite; return the gradient's norm."""
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
        gradients = []
        for parameter in self._parameters.values():
            if parameter.grad is None:
                # AdamW skips parameters without a gradient, but their moments must decay too.
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        return whole(torch.nn.utils.get_total_norm(gradients))

    def _finite_weights(self) -> bool:
        weights = [parameter.detach() for parameter in self._parameters.values()]
        return math.isfinite(float(whole(torch.nn.utils.get_total_norm(weights))))

    def _busy(self, part: Sequence[int], advantages: Floats, signal: TokenSignal) -> list[int]:
        """Select the rows of ``part`` that can change the gradient."""
        regularised = self.algorithm.kl_coefficient or self.algorithm.entropy_coefficient
        if regularised or not self.settings.skip_idle_rows:
            return list(part)
        return [i for i in part if advantages[i] or signal.covers(i)]

    def _snapshot(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        """Each row's log-probabilities under the current weights."""
        return self._batched.logprobs(rows)

    @contextmanager
    def _with_weights(self, name: str) -> Iterator[None]:
        """Use the weights called ``name`` inside the block: ``start``, ``average`` or
        ``current``."""
        if name == "start" and self._start is None:
            with self.model.reference():
                yield
        else:
            copy = {"start": self._start, "average": self._average}.get(name)
            with self.model.active(), swap(self._parameters, copy or {}):
                yield

    def _reference(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        with self._with_weights("start"):
            return self._snapshot(rows)

    def _copy_of_start(self, *, always: bool) -> dict[str, Tensor] | None:
        """Copy the parameters if a reference is needed. Unless ``always`` is set, a model that can
        compute its own reference (a new adapter, switched off) needs no copy."""
        if not self.algorithm.needs_reference:
            return None
        if not always:
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
    """Pad the ``chosen`` rows of ``values`` with 0 to (B, T - 1)."""
    padded = torch.nn.utils.rnn.pad_sequence([values[i] for i in chosen], batch_first=True)
    assert padded.shape == batch.mask_BT.shape
    return padded
