"""Below which confidence a cascade defers: chosen on validation questions."""

import numpy as np

from envs.corea_deferral.settings import ThresholdSource
from evaluation.metrics.deferral import DeferralCurve


def choose_threshold(
    curve: DeferralCurve,
    source: ThresholdSource,
    *,
    accuracy_loss: float = 0.01,
    cost_share: float = 0.8,
    cost_large: float = float("nan"),
    fixed: float = 0.5,
) -> float:
    """A threshold by what it gives on the questions of ``curve``.

    accuracy      the cheapest that loses at most ``accuracy_loss`` of the large model's accuracy
    cost          the most accurate that costs at most ``cost_share`` of ``cost_large``
    large-pass@1  the large model's accuracy itself (COREA, arXiv:2603.03752; there on the test set)
    fixed         ``fixed``

    Where no threshold keeps the bound, the one that comes nearest.
    """
    match source:
        case "fixed":
            return fixed
        case "large-pass@1":
            return curve.accuracy_large
        case "accuracy":
            enough_D = curve.accuracy_D >= curve.accuracy_large - accuracy_loss - 1e-12
            if not enough_D.any():
                return float(curve.threshold_D[np.argmax(curve.accuracy_D)])
            cost_D = np.where(enough_D, curve.cost_D, np.inf)
            return float(curve.threshold_D[np.argmin(cost_D)])
        case "cost":
            cheap_D = curve.cost_D <= cost_share * cost_large + 1e-12
            if not cheap_D.any():
                return float(curve.threshold_D[np.argmin(curve.cost_D)])
            accuracy_D = np.where(cheap_D, curve.accuracy_D, -np.inf)
            return float(curve.threshold_D[np.argmax(accuracy_D)])
