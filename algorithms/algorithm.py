"""An algorithm is a bundle of independent choices, written down as plain data.

Nothing here computes: :mod:`algorithms.credit` reads the baseline and the scale,
:mod:`algorithms.surrogates` the surrogate, :mod:`algorithms.objective` the reduction.
"""

import math
from dataclasses import dataclass
from typing import Literal

from vocabulary import UserError


@dataclass(frozen=True)
class ClippedRatio:
    """``-min(r A, clip(r, 1 - low, 1 + high) A)``: PPO's pessimistic bound (arXiv:1707.06347)."""

    level: Literal["token", "sequence"] = "token"
    """Ratio of each token, or the sequence's geometric mean of them (GSPO, arXiv:2507.18071)."""
    low: float = 0.2
    """The ratio is clipped below at 1 - low."""
    high: float = 0.2
    """The ratio is clipped above at 1 + high."""
    dual: float | None = None
    """Where the advantage is negative, the ratio counts as this at most (dual clip,
    arXiv:1912.09729); default: it has no such bound."""


@dataclass(frozen=True)
class SoftGate:
    """``-(4 / tau) sigmoid(tau (r - 1)) A``: a smooth bound (SAPO, arXiv:2511.20347)."""

    tau_positive: float = 1.0
    """Steepness of the gate where the advantage is positive."""
    tau_negative: float = 1.05
    """Steepness of the gate where it is not."""


@dataclass(frozen=True)
class ClippedWeight:
    """``-sg(min(r, high)) A log pi``: a bounded weight on the score (CISPO, arXiv:2506.13585)."""

    high: float = 5.0
    """Largest weight that a token gets; an absolute value, not a distance from 1."""


@dataclass(frozen=True)
class SequenceWeight:
    """``-sg(clip(s, 1 - low, 1 + high)) A log pi``: GSPO in the words of CoRe (arXiv:2601.21600,
    appendix C). A clipped sequence keeps its gradient, unlike in the published GSPO."""

    low: float = 3e-4
    """The sequence's ratio is clipped below at 1 - low."""
    high: float = 4e-4
    """The sequence's ratio is clipped above at 1 + high."""


@dataclass(frozen=True)
class GateWeight:
    """``-sg((4 / tau) sigmoid(tau (r - 1))) A log pi``: SAPO in the words of CoRe
    (arXiv:2601.21600, appendix C). The weight grows with r and is 2 / tau at r = 1, where the
    published one is 1 and falls off on both sides."""

    tau_positive: float = 1.0
    """Steepness of the gate where the advantage is positive."""
    tau_negative: float = 1.05
    """Steepness of the gate where it is not."""


Surrogate = ClippedRatio | SoftGate | ClippedWeight | SequenceWeight | GateWeight


@dataclass(frozen=True)
class Algorithm:
    """How rewards become a gradient.

    Example: ``Algorithm(scale="none", reduction="constant-length", length=512)`` is Dr. GRPO.
    """

    baseline: Literal["group-mean", "leave-one-out"] = "group-mean"
    """What is subtracted from a reward: its group's mean, or the mean of the group's others."""
    scale: Literal["none", "group-std", "batch-std"] = "group-std"
    """What the difference is divided by: nothing, the standard deviation of the group's rewards, or
    that of all differences in the batch."""
    combine: Literal["sum-then-normalise", "normalise-then-sum"] = "sum-then-normalise"
    """Reward terms are added up before they are compared, or each is compared and scaled within its
    group, and their sum by the batch (GDPO, arXiv:2601.05242): then every term counts the same,
    whatever its weight."""
    ddof: Literal[0, 1] = 1
    """Standard deviation of the population (0) or its unbiased estimate (1)."""
    epsilon: float = 1e-4
    """Added to the standard deviation."""
    surrogate: Surrogate = ClippedRatio()
    """What is maximised in place of the expected advantage."""
    reduction: Literal["sequence-mean", "token-mean", "constant-length"] = "sequence-mean"
    """Mean over rows of each row's token mean, mean over all tokens, or sum over all tokens divided
    by rows times a constant length."""
    length: int = 0
    """The length of constant-length: the most tokens that a row may sample. 0 otherwise."""
    kl_coefficient: float = 0.0
    """Weight of the divergence from the reference policy (the model before training); 0 is off."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    """d, d^2 / 2, or exp(-d) - 1 + d, with d = log pi - log pi_ref."""
    kl_importance: bool = False
    """Multiply the divergence by the token's importance ratio: its gradient is then unbiased."""
    entropy_coefficient: float = 0.0
    """Weight of a bonus on the mean entropy of sampled positions; 0 is off."""
    dynamic_sampling: bool = False
    """Train on groups whose rewards differ only, and sample again until there are enough (DAPO,
    arXiv:2503.14476)."""
    max_generation_batches: int = 10
    """With dynamic sampling: rounds of sampling in one step at most."""
    generation_batch: int = 0
    """With dynamic sampling: problems in one round; 0: as many as a step has. What is informative
    beyond a step's problems is not trained on."""
    overlong_limit: int = 0
    """Sampled tokens at which the over-long penalty is complete (DAPO); 0 is off."""
    overlong_buffer: int = 0
    """The penalty grows linearly over this many tokens before the limit."""
    overlong_factor: float = 1.0
    """Size of the complete penalty."""


def validate(algorithm: Algorithm) -> Algorithm:
    """``algorithm`` itself, if it makes sense.

    Raises:
        UserError: it does not; the sentence says what to change.
    """
    for complaint in (*_complaints(algorithm), *_surrogate_complaints(algorithm)):
        raise UserError(complaint)
    return algorithm


def _complaints(a: Algorithm) -> list[str]:
    numbers = {
        "epsilon": a.epsilon,
        "kl-coefficient": a.kl_coefficient,
        "overlong-factor": a.overlong_factor,
    }
    checks = [
        *((not _at_least_zero(v), f"algo.{k} must not be negative") for k, v in numbers.items()),
        (
            not math.isfinite(a.entropy_coefficient),
            "algo.entropy-coefficient must be a finite number",
        ),
        (
            a.kl_coefficient != 0 and a.kl_estimator == "k1" and not a.kl_importance,
            "k1 in the loss has a gradient of zero on average; use algo.kl-estimator k3, or "
            "switch on algo.kl-importance",
        ),
        (
            a.kl_importance and a.kl_coefficient == 0,
            "algo.kl-importance does nothing without a divergence; set algo.kl-coefficient",
        ),
        (
            a.combine == "normalise-then-sum" and a.scale != "group-std",
            "algo.combine normalise-then-sum scales each term by its group; leave algo.scale at "
            "group-std",
        ),
        (
            a.reduction == "constant-length" and a.length < 1,
            "algo.reduction constant-length needs algo.length, the most tokens a row may sample",
        ),
        (
            a.reduction != "constant-length" and a.length != 0,
            "algo.length is for algo.reduction constant-length only",
        ),
        (
            (a.overlong_limit > 0) != (a.overlong_buffer > 0),
            "the over-long penalty needs both algo.overlong-limit and algo.overlong-buffer",
        ),
        (
            a.overlong_limit < 0 or a.overlong_buffer < 0 or a.overlong_buffer > a.overlong_limit,
            "algo.overlong-buffer must lie between 0 and algo.overlong-limit",
        ),
        (a.max_generation_batches < 1, "algo.max-generation-batches must be at least 1"),
        (a.generation_batch < 0, "algo.generation-batch must not be negative"),
        (
            a.generation_batch > 0 and not a.dynamic_sampling,
            "algo.generation-batch does nothing without algo.dynamic-sampling; switch that on",
        ),
    ]
    return [sentence for wrong, sentence in checks if wrong]


def _surrogate_complaints(algorithm: Algorithm) -> list[str]:
    match algorithm.surrogate:
        case ClippedRatio(dual=dual) if dual is not None and not 1 < dual < math.inf:
            wrong = True
            sentence = "algo.surrogate.dual must lie above 1: at 1 nothing has changed yet"
        case ClippedRatio(low=low, high=high) | SequenceWeight(low=low, high=high):
            wrong = not (0 < low < 1 and 0 < high < math.inf)
            sentence = "algo.surrogate.low must lie between 0 and 1, and high above 0"
        case SoftGate(positive, negative) | GateWeight(positive, negative):
            wrong = not (0 < positive < math.inf and 0 < negative < math.inf)
            sentence = "algo.surrogate.tau-positive and tau-negative must be above 0"
        case ClippedWeight(high=high):
            wrong = not 1 <= high < math.inf
            sentence = (
                "algo.surrogate.high is the largest weight itself; below 1 it would shrink "
                "the gradient of unchanged tokens too"
            )
        case _:
            # A surrogate of a third party answers for its own numbers.
            return []
    return [sentence] if wrong else []


def _at_least_zero(value: float) -> bool:
    return 0 <= value < math.inf
