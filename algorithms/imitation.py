"""Imitation: one optimizer step on the likelihood of each batch of worked solutions.

A worked solution is a row with advantage 1 whose sampler is certain of every token
(log-probability 0). The gradient of the loss is therefore that of the negative log-likelihood, and
the mismatch that a learner reports is the negative log-likelihood itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.settings import LearnerSettings
from coterie.datatypes import TokenCodec, Trajectory

LIKELIHOOD = Algorithm(scale="none", reduction="token-mean")
"""With one optimizer step for each batch, the loss is the mean negative log-likelihood."""

_WARMUP = 0.1
"""Share of the steps over which the learning rate rises."""


@dataclass(frozen=True)
class Imitation:
    """Settings of imitation, which precedes training on rewards."""

    steps: int
    """Training steps."""
    lr: float
    """Peak learning rate: it rises over a tenth of the steps and falls to 0 at the last."""

    def settings(self, usual: LearnerSettings) -> LearnerSettings:
        """Return the optimizer's settings for imitation, based on the ``usual`` ones."""
        return replace(imitating(usual), lr=self.lr, schedule="linear", warmup=_WARMUP)


def imitating(settings: LearnerSettings) -> LearnerSettings:
    """Adapt ``settings`` to rows that no policy sampled: one step for each batch, and no importance
    correction."""
    return replace(
        settings,
        importance_correction="none",
        importance_cap=LearnerSettings.importance_cap,
        epochs=1,
        minibatches=1,
    )


def worked_row(
    codec: TokenCodec,
    given: Sequence[int],
    answer: str,
    *,
    role: str,
    problem: str,
    ends: bool = True,
) -> Trajectory:
    """Return a row that teaches ``answer``.

    Args:
        codec: the role's codec.
        given: the tokens before the answer.
        answer: the text to learn.
        role: the role that learns.
        problem: the problem's id.
        ends: whether the end of the turn is learned too.
    """
    target = [*codec.extend(answer), *(codec.eos_ids[:1] if ends else ())]
    tokens = np.asarray([*given, *target], dtype=np.int64)
    return Trajectory(
        agent=f"{role}_0",
        role=role,
        tokens=tokens,
        mask=np.arange(len(tokens)) >= len(given),
        logprobs=np.zeros(len(tokens), dtype=np.float32),
        reward=1.0,
        reward_terms={"likelihood": 1.0},
        groups={"problem": problem},
        turns=((len(given), len(tokens)),),
    )


def describe_imitation(metrics: Mapping[str, float]) -> dict[str, float]:
    """Select a learner's metrics that make sense for imitation. ``loss`` is the mean negative
    log-likelihood before the update, in nats per token."""
    names = ("entropy", "grad_norm", "lr", "rows", "tokens", "skipped_steps")
    reported = {name: metrics[name] for name in names if name in metrics}
    return (
        {"loss": metrics["mismatch/mean"], **reported} if "mismatch/mean" in metrics else reported
    )
