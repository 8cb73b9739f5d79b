"""Imitation: one step up the likelihood of each batch of worked solutions.

A worked solution is a row whose sampler is certain of every token (log-probability 0), with the
advantage 1: the gradient of the loss is that of the negative log-likelihood, and what a learner
reports as its disagreement with the sampler is the negative log-likelihood itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.settings import LearnerSettings
from coterie.datatypes import TokenCodec, Trajectory

LIKELIHOOD = Algorithm(scale="none", reduction="token-mean")
"""With one optimizer step on each batch: the mean negative log-likelihood of its tokens."""

_RISE = 0.1
"""Share of the steps over which the learning rate rises."""


@dataclass(frozen=True)
class Imitation:
    """How roles learn from worked solutions before they are rewarded."""

    steps: int
    """Training steps."""
    lr: float
    """Peak learning rate: it rises over a tenth of the steps and falls to 0 at the last."""

    def settings(self, usual: LearnerSettings) -> LearnerSettings:
        """The optimiser's settings while imitating; what imitation leaves open is as ``usual``."""
        return replace(imitating(usual), lr=self.lr, schedule="linear", warmup=_RISE)


def imitating(settings: LearnerSettings) -> LearnerSettings:
    """``settings`` for rows that no policy sampled: one step on each batch, uncorrected."""
    return replace(settings, importance_correction="none", epochs=1, minibatches=1)


def worked_row(
    codec: TokenCodec,
    given: Sequence[int],
    answer: str,
    *,
    role: str,
    problem: str,
    ends: bool = True,
) -> Trajectory:
    """A row from which ``answer`` is learned.

    Args:
        codec: the role's.
        given: the tokens that it answers.
        answer: what is learned.
        role: who learns it.
        problem: the id of what is answered.
        ends: whether the end of the turn is learned too.
    """
    wanted = [*codec.extend(answer), *(codec.eos_ids[:1] if ends else ())]
    tokens = np.asarray([*given, *wanted], dtype=np.int64)
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
    """A learner's metrics of an update on worked solutions: ``loss``, the mean negative
    log-likelihood before the update in nats a token, and those that mean something here."""
    names = ("entropy", "grad_norm", "lr", "rows", "tokens", "skipped_steps")
    reported = {name: metrics[name] for name in names if name in metrics}
    return (
        {"loss": metrics["mismatch/mean"], **reported} if "mismatch/mean" in metrics else reported
    )
