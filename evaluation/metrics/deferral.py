"""Deferral from a small model to a large one: costs, curves, baselines."""

# Q questions (one pair of responses each), D points of a curve

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats
from coterie.rewards.confidence import ThresholdSource

OUTPUT_WEIGHT = 4.0
"""Price of an output token in prompt tokens (COREA, arXiv:2603.03752)."""

_GRID = tuple(step / 20 for step in range(23))
_STEP = 1e-9


def response_cost(
    prompt_tokens: npt.ArrayLike,
    output_tokens: npt.ArrayLike,
    *,
    size_ratio: float = 1.0,
    output_weight: float = OUTPUT_WEIGHT,
) -> Floats:
    """Return ``(n_prompt + w n_out) * size_ratio``, a cost in prompt tokens of the small model
    (COREA, arXiv:2603.03752).

    Args:
        prompt_tokens: n_prompt, of any shape.
        output_tokens: n_out, of the same shape.
        size_ratio: nominal parameters of the model over those of the small one.
        output_weight: w, the price of an output token in prompt tokens.
    """
    return (as_floats(prompt_tokens) + output_weight * as_floats(output_tokens)) * size_ratio


@dataclass(frozen=True)
class DeferralCurve:
    """Accuracy and cost at each threshold, in rising order of deferral. A response is kept if its
    confidence is at least the threshold; without a confidence it is always deferred."""

    threshold_D: Floats
    accuracy_D: Floats
    cost_D: Floats
    """Mean over all questions; a kept question costs nothing at the large model."""
    deferred_D: Floats
    """Share of questions that go to the large model."""
    accuracy_small: float
    accuracy_large: float


def deferral_curve(
    confidence_Q: npt.ArrayLike,
    correct_small_Q: npt.ArrayLike,
    correct_large_Q: npt.ArrayLike,
    cost_small_Q: npt.ArrayLike,
    cost_large_Q: npt.ArrayLike,
) -> DeferralCurve:
    """The curve over thresholds 0, .05, ... 1.05, 1.1 and just above every stated confidence.

    Args:
        confidence_Q: of the small model's response, one to each question; NaN: it stated none.
        correct_small_Q: whether that response is right.
        correct_large_Q: whether the large model's is.
        cost_small_Q: of that response.
        cost_large_Q: of the large model's, in the same unit.

    Raises:
        ValueError: there is no question.
    """
    confidence_Q = as_floats(confidence_Q)
    small_Q, large_Q = as_floats(correct_small_Q), as_floats(correct_large_Q)
    cost_small_Q, cost_large_Q = as_floats(cost_small_Q), as_floats(cost_large_Q)
    if not len(confidence_Q):
        raise ValueError("a deferral curve needs at least one question")
    # A missing confidence sorts below every threshold.
    order_Q = np.argsort(np.where(np.isnan(confidence_Q), -np.inf, confidence_Q), kind="stable")
    sorted_Q = np.where(np.isnan(confidence_Q), -np.inf, confidence_Q)[order_Q]
    stated = np.unique(sorted_Q[np.isfinite(sorted_Q)])
    threshold_D = np.unique(np.concatenate([_GRID, stated, stated + _STEP]))
    deferred_D = np.searchsorted(sorted_Q, threshold_D, side="left")

    def mean_when_deferred(kept_Q: Floats, moved_Q: Floats) -> Floats:
        change = np.concatenate([[0.0], np.cumsum((moved_Q - kept_Q)[order_Q])])
        return (kept_Q.sum() + change[deferred_D]) / len(kept_Q)

    return DeferralCurve(
        threshold_D=threshold_D,
        accuracy_D=mean_when_deferred(small_Q, large_Q),
        cost_D=mean_when_deferred(cost_small_Q, cost_small_Q + cost_large_Q),
        deferred_D=deferred_D / len(confidence_Q),
        accuracy_small=float(small_Q.mean()),
        accuracy_large=float(large_Q.mean()),
    )


def random_deferral(
    accuracy_small: npt.ArrayLike, accuracy_large: npt.ArrayLike, deferred: npt.ArrayLike
) -> Floats:
    """Expected accuracy when a share ``deferred`` of questions is deferred at random."""
    small, large = as_floats(accuracy_small), as_floats(accuracy_large)
    return small + as_floats(deferred) * (large - small)


def area_over_random(curve: DeferralCurve) -> float:
    """Area between the curve and the chord of random deferral, over the deferred share."""
    deferred_D, accuracy_D = _complete(curve)
    chord_D = random_deferral(curve.accuracy_small, curve.accuracy_large, deferred_D)
    return float(np.trapezoid(accuracy_D - chord_D, deferred_D))


def performance_gap_recovered(
    accuracy: npt.ArrayLike, accuracy_small: float, accuracy_large: float
) -> Floats:
    """``(acc - acc_S) / (acc_L - acc_S)`` (RouteLLM, arXiv:2406.18665); NaN without a gap."""
    gap = accuracy_large - accuracy_small
    return (as_floats(accuracy) - accuracy_small) / (gap if gap else np.nan)


def average_gap_recovered(curve: DeferralCurve) -> float:
    """APGR: area under the recovered gap over the deferred share in [0, 1]; .5 is random deferral
    (RouteLLM, arXiv:2406.18665)."""
    deferred_D, accuracy_D = _complete(curve)
    recovered_D = performance_gap_recovered(accuracy_D, curve.accuracy_small, curve.accuracy_large)
    return float(np.trapezoid(recovered_D, deferred_D))


def call_performance_threshold(curve: DeferralCurve, recovered: float) -> float:
    """CPT(x): the smallest deferred share that recovers ``recovered`` of the gap, linear between
    points (arXiv:2406.18665); NaN where it is never reached."""
    deferred_D, accuracy_D = _complete(curve)
    recovered_D = performance_gap_recovered(accuracy_D, curve.accuracy_small, curve.accuracy_large)
    return _first_reached(recovered_D, deferred_D, recovered)


def cost_at_accuracy(curve: DeferralCurve, accuracy: float) -> float:
    """The smallest cost at which the cascade reaches ``accuracy``; NaN if no threshold does.

    Linear between points, as a random choice between two thresholds is. It compares systems at
    equal accuracy.
    """
    return _first_reached(curve.accuracy_D, curve.cost_D, accuracy)


def _first_reached(value_D: Floats, price_D: Floats, wanted: float) -> float:
    """Price at which ``value_D`` first reaches ``wanted``, linear between points; NaN: never."""
    reached = np.flatnonzero(value_D >= wanted - 1e-12)
    if not len(reached):
        return float("nan")
    first = reached[0]
    if first == 0:
        return float(price_D[0])
    share = (wanted - value_D[first - 1]) / (value_D[first] - value_D[first - 1])
    return float(price_D[first - 1] + share * (price_D[first] - price_D[first - 1]))


@dataclass(frozen=True)
class ThresholdChoice:
    """How a threshold is chosen, and on which questions."""

    source: ThresholdSource = "cost"
    accuracy_loss: float = 0.01
    cost_share: float = 0.8
    fixed: float = 0.5
    on_test: bool = False
    """Choose on the scored questions themselves, as COREA does (arXiv:2603.03752)."""


def choose_threshold(curve: DeferralCurve, choice: ThresholdChoice, cost_large: float) -> float:
    """Choose a threshold by its results on the questions of ``curve``.

    accuracy      the cheapest that loses at most ``accuracy_loss`` of the large model's accuracy
    cost          the most accurate that costs at most ``cost_share`` of ``cost_large``
    large-pass@1  the large model's accuracy itself (COREA, arXiv:2603.03752; there on the test set)
    fixed         ``fixed``

    If no threshold keeps the bound, the nearest one is chosen.
    """
    match choice.source:
        case "fixed":
            return choice.fixed
        case "large-pass@1":
            return curve.accuracy_large
        case "accuracy":
            enough_D = curve.accuracy_D >= curve.accuracy_large - choice.accuracy_loss - 1e-12
            if not enough_D.any():
                return float(curve.threshold_D[np.argmax(curve.accuracy_D)])
            cost_D = np.where(enough_D, curve.cost_D, np.inf)
            return float(curve.threshold_D[np.argmin(cost_D)])
        case "cost":
            cheap_D = curve.cost_D <= choice.cost_share * cost_large + 1e-12
            if not cheap_D.any():
                return float(curve.threshold_D[np.argmin(curve.cost_D)])
            accuracy_D = np.where(cheap_D, curve.accuracy_D, -np.inf)
            return float(curve.threshold_D[np.argmax(accuracy_D)])


def _complete(curve: DeferralCurve) -> tuple[Floats, Floats]:
    """Extend the curve to deferred shares from 0 to 1."""
    # Responses without a confidence are always deferred; below their share, a random part of them.
    deferred_D = np.concatenate([[0.0], curve.deferred_D, [1.0]])
    accuracy_D = np.concatenate([[curve.accuracy_small], curve.accuracy_D, [curve.accuracy_large]])
    return deferred_D, accuracy_D
