"""The learner: one role's optimizer and schedule, and the only algorithm code that has state.

Legend: B rows, T tokens.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor

from coterie.agents.models.shards import gather, shard_as, whole
from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.batched_model import BatchedModel
from coterie.algorithms.batching import Batch
from coterie.algorithms.credit import Floats
from coterie.algorithms.distillation import TokenSignal
from coterie.algorithms.logprobs import TrainableModel, batch_logprobs
from coterie.algorithms.nonfinite import NotFinite, not_finite_error
from coterie.algorithms.objective import SUMS, denominators, objective
from coterie.algorithms.optimizer_state import (
    load_moments,
    make_optimizer,
    reached,
    save_moments,
    swap,
)
from coterie.algorithms.rereading import Rereading
from coterie.algorithms.settings import LearnerSettings
from coterie.algorithms.step_learner import NO_SIGNAL, StepLearner
from coterie.cli.progress import LEARNED
from coterie.datatypes import Trajectory, UserError


class Learner(StepLearner):
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
        super().__init__(model, algorithm, settings, temperature, total_steps)
        self.model: TrainableModel = model
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

    def begin(self) -> None:
        """Make the current weights the start of training."""
        for copy in self._copies().values():
            for name, value in copy.items():
                value.copy_(self._parameters[name].detach())

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

    def _gradient(
        self,
        rows: Sequence[Trajectory],
        advantages: Floats,
        old: list[Tensor] | None,
        ref: list[Tensor] | None,
        part: Sequence[int],
        signal: TokenSignal = NO_SIGNAL,
    ) -> tuple[float, Tensor, Tensor]:
        """Leave the gradient of one optimizer step on the parameters; return loss, sums, peaks."""
        algorithm, settings = self.algorithm, self.settings
        totals, agent_tokens = denominators(rows, part)
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
        self._optimizer.param_groups[0]["lr"] = self._rate(done)
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

    def _why_lost(
        self,
        rows: Sequence[Trajectory],
        advantages: Floats,
        old: list[Tensor] | None,
        ref: list[Tensor] | None,
        signal: TokenSignal,
    ) -> NotFinite:
        def loss_and_norm(row: int) -> tuple[float, float]:
            loss, _, _ = self._gradient(rows, advantages, old, ref, [row], signal)
            norm = float(self._norm())
            self._optimizer.zero_grad()
            return loss, norm

        return not_finite_error(rows, advantages.tolist(), loss_and_norm)

    def _after_update(self) -> None:
        for name, past in (self._average or {}).items():
            past.lerp_(
                self._parameters[name].detach().to(past), 1 - self.algorithm.distillation.decay
            )

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


def _stack(values: list[Tensor], chosen: list[int], batch: Batch) -> Tensor:
    """Pad the ``chosen`` rows of ``values`` with 0 to (B, T - 1)."""
    padded = torch.nn.utils.rnn.pad_sequence([values[i] for i in chosen], batch_first=True)
    assert padded.shape == batch.mask_BT.shape
    return padded
