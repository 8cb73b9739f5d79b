"""The learner of a role whose weights are on a server.

A server computes the gradients of a few losses only. So the loss is computed here, from the
server's log-probabilities, and only its derivatives go to the server: with
c_t = dL/dlog pi_t, the cross-entropy -sum_t w_t log pi_t with weights w_t = -c_t has the gradient
of L (the surrogate of ``TrainingClient.forward_backward_custom``). Any loss of sampled tokens
learns in this way, and several optimizer steps on one batch do, too.

Legend: B rows, T tokens.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from coterie.algorithms import Algorithm, LearnerSettings
from coterie.algorithms.batching import micro_batches, pad
from coterie.algorithms.credit import Floats
from coterie.algorithms.distillation import TokenSignal
from coterie.algorithms.nonfinite import NotFinite
from coterie.algorithms.objective import denominators, objective
from coterie.algorithms.rereading import Rereading
from coterie.algorithms.step_learner import NO_SIGNAL, StepLearner
from coterie.algorithms.turn_credit import TurnBonus
from coterie.cli.progress import LEARNED
from coterie.datatypes import Trajectory, UserError
from coterie.extras.tinker.model import ServerModel
from coterie.extras.tinker.service import Service, package

SCALE = 2.0**-10
"""Factor of all gradients. Some servers divide a loss by the sum of its weights where that is above
1; scaled weights stay below. AdamW takes the same steps at any scale if its epsilon and the norm at
which gradients are clipped are scaled, too."""
_EPSILON = 1e-8
"""AdamW's, as in torch."""

Score = Callable[[Sequence[Trajectory]], list[Tensor]]
"""From rows to the log-probability of every token but the first, (T - 1,) each."""


class ServerWeights:
    """The adapter of a role on a server, through the training client of the official package."""

    def __init__(self, service: Service, model: ServerModel, client: Any, budget: int) -> None:
        """``budget``: tokens of one request."""
        self.service, self.model, self.client, self.budget = service, model, client, budget

    def logprobs(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        """Return the log-probability of every token but the first, (T - 1,) for each row."""
        return self._run(rows, [np.zeros(len(row.tokens) - 1) for row in rows], backward=False)

    def add_gradient(self, rows: Sequence[Trajectory], weights: Sequence[Floats]) -> None:
        """Add the gradient of -sum_t w_t log pi_t to that of the next step.

        Args:
            rows: the rows.
            weights: (T - 1,) for each row.
        """
        self._run(rows, weights, backward=True)

    def _run(
        self, rows: Sequence[Trajectory], weights: Sequence[Floats], *, backward: bool
    ) -> list[Tensor]:
        role, tokens = self.model.role, self.model.tokens
        call = self.client.forward_backward if backward else self.client.forward
        what = f"{'train' if backward else 'score'} rows of {role}"
        out: list[Tensor] = [torch.empty(0)] * len(rows)
        chunks = micro_batches(rows, self.budget)
        # All requests are sent before the first answer is awaited.
        sent = [
            call([_datum(rows[i], weights[i]) for i in chunk], "cross_entropy") for chunk in chunks
        ]
        for chunk, future in zip(chunks, sent):
            found = self.service.wait(what, future).loss_fn_outputs
            computed = sum(len(rows[i].tokens) - 1 for i in chunk)
            if backward:
                tokens.trained += computed
            else:
                tokens.scored += computed
            if len(found) != len(chunk):
                raise self.service.broken(f"{len(found)} rows of {role} in place of {len(chunk)}")
            for i, output in zip(chunk, found):
                out[i] = self._checked(rows[i], output["logprobs"].data)
        return out

    def _checked(self, row: Trajectory, numbers: Sequence[float]) -> Tensor:
        logp_T = torch.tensor(numbers, dtype=torch.float32)
        mask = torch.from_numpy(row.mask[1:])
        if logp_T.shape != mask.shape or not bool(logp_T[mask].isfinite().all()):
            raise self.service.broken(f"log-probabilities of {self.model.role} that are not finite")
        return torch.where(mask, logp_T, 0.0)

    def step(self, settings: LearnerSettings, lr: float) -> dict[str, float]:
        """Take an AdamW step on the added gradients; return the server's metrics."""
        tinker = package()
        beta1, beta2 = settings.betas
        clip = settings.max_grad_norm * SCALE if math.isfinite(settings.max_grad_norm) else 0.0
        future = self.client.optim_step(
            tinker.AdamParams(
                learning_rate=lr,
                beta1=beta1,
                beta2=beta2,
                eps=_EPSILON * SCALE,
                weight_decay=settings.weight_decay,
                grad_clip_norm=clip,
            )
        )
        answer = self.service.wait(f"update {self.model.role}", future)
        return getattr(answer, "metrics", None) or {}


def _datum(row: Trajectory, weight_T: Floats) -> Any:
    tinker = package()

    def tensor(values: Any, dtype: str) -> Any:
        return tinker.TensorData(data=values.tolist(), dtype=dtype, shape=[len(values)])

    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints(row.tokens[:-1].tolist()),
        loss_fn_inputs={
            "target_tokens": tensor(row.tokens[1:], "int64"),
            "weights": tensor(np.asarray(weight_T, np.float64), "float32"),
        },
    )


class ServerLearner(StepLearner):
    """Applies an algorithm's loss to the rows of one role on a server."""

    model: ServerModel

    def __init__(
        self,
        weights: ServerWeights,
        start: Score,
        algorithm: Algorithm,
        settings: LearnerSettings,
        *,
        total_steps: int | None = None,
    ) -> None:
        """For other arguments see :class:`coterie.algorithms.learner.Learner`.

        Args:
            weights: of the role.
            start: scores rows with the weights before training.
        """
        super().__init__(weights.model, algorithm, settings, 1.0, total_steps)
        self.weights, self._start = weights, start
        self._source = weights.logprobs
        self._rereading = Rereading(algorithm.distillation, self, self._with_weights)

    def logprobs(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        """Log-probabilities under the weights that rereading has chosen, (T - 1,) for each row."""
        return self._source(rows)

    def likeliest(self, rows: Sequence[Trajectory], count: int) -> Any:
        """Not reached: the check refuses ``likeliest``."""
        raise UserError("a Tinker server gives the probabilities of sampled tokens only")

    def counters(self) -> dict[str, int]:
        """What a resumed run needs beside the server's state."""
        return {"updates": self._updates, "skipped": self._skipped, "lost": self._lost}

    def restore(self, plain: dict[str, Any]) -> None:
        """Continue from :meth:`counters`."""
        self._updates, self._skipped = int(plain["updates"]), int(plain["skipped"])
        self._lost = int(plain["lost"])

    @contextmanager
    def _with_weights(self, name: str) -> Iterator[None]:
        # A moving average with decay 0 is the newest weights.
        self._source = self._start if name == "start" else self.weights.logprobs
        yield
        self._source = self.weights.logprobs

    def _snapshot(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        return self.weights.logprobs(rows)

    def _reference(self, rows: Sequence[Trajectory]) -> list[Tensor]:
        return self._start(rows)

    def _gradient(
        self,
        rows: Sequence[Trajectory],
        advantages: Floats,
        old: list[Tensor] | None,
        ref: list[Tensor] | None,
        part: Sequence[int],
        signal: TokenSignal = NO_SIGNAL,
    ) -> tuple[float, Tensor, Tensor]:
        algorithm, settings = self.algorithm, self.settings
        totals, agent_tokens = denominators(rows, part)
        busy = self._busy(part, advantages, signal)
        # Without a row the step still decays the moments: one row with weights of 0 takes it.
        chosen = busy or [min(part, key=lambda i: len(rows[i].tokens))]
        LEARNED.add((len(part) - len(chosen)) / settings.epochs)
        own = [rows[i] for i in chosen]
        batch = pad(
            own,
            advantages[chosen],
            self.model.device,
            [signal.bonus[i] for i in chosen] if signal.bonus else None,
        )
        logp_BT = pad_sequence(self.weights.logprobs(own), batch_first=True).requires_grad_()
        share = objective(
            logp_BT,
            torch.full_like(logp_BT.detach(), math.nan),  # a server does not give entropies
            logp_BT.detach() if old is None else _pad(old, chosen),
            None if ref is None else _pad(ref, chosen),
            batch,
            algorithm,
            totals,
            agent_tokens_B=torch.tensor([agent_tokens[i] for i in chosen]),
            correction=settings.importance_correction,
            cap=settings.importance_cap,
        )
        share.loss.backward()
        assert logp_BT.grad is not None
        derivative_BT = logp_BT.grad.double().numpy() * (1.0 if busy else 0.0)
        if not np.isfinite(derivative_BT).all():
            return math.nan, share.sums, share.peaks
        self.weights.add_gradient(
            own, [-SCALE * d[: len(row.tokens) - 1] for d, row in zip(derivative_BT, own)]
        )
        LEARNED.add(len(chosen) / settings.epochs)
        return (float(share.loss.detach()) if busy else 0.0), share.sums, share.peaks

    def _step(self, loss: float, done: float) -> float:
        lr = self._rate(done)
        if not math.isfinite(loss):
            self._skipped += 1
            return math.nan
        metrics = self.weights.step(self.settings, lr)
        norms = [value for name, value in metrics.items() if "grad" in name and "norm" in name]
        return norms[0] / SCALE if norms else math.inf

    def _finite_weights(self) -> bool:
        return True  # weights that are not finite show in the next log-probabilities

    def _why_lost(
        self,
        rows: Sequence[Trajectory],
        advantages: Floats,
        old: list[Tensor] | None,
        ref: list[Tensor] | None,
        signal: TokenSignal,
    ) -> NotFinite:
        return NotFinite("its losses are not finite")

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantage_B: npt.ArrayLike,
        turn_bonus: TurnBonus = MappingProxyType({}),
    ) -> dict[str, float]:
        """See :meth:`StepLearner.update`; what the server does not report is left out."""
        metrics = super().update(trajectories, advantage_B, turn_bonus)
        reported = {name: value for name, value in metrics.items() if math.isfinite(value)}
        spent = {f"server/{name}": float(n) for name, n in self.model.tokens.plain().items()}
        if self.model.prices is not None:
            spent["server/cost"] = self.model.tokens.cost(self.model.prices)
        return reported | spent


def _pad(values: Sequence[Tensor], chosen: Sequence[int]) -> Tensor:
    return pad_sequence([values[i] for i in chosen], batch_first=True)
