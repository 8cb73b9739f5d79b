"""Which combinations of choices make no sense, and why."""

import math

from algorithms.algorithm import (
    Algorithm,
    ClippedRatio,
    ClippedWeight,
    GateWeight,
    SequenceWeight,
    SoftGate,
)
from vocabulary import UserError


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
