"""Whether a policy knows when it is right, and how much luck there is in its answers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from coterie.comparison.responses import Responses
from coterie.evaluation.metrics.calibration import (
    adaptive_calibration_error,
    brier,
    calibration_columns,
    calibration_error,
    discreteness,
    expected_calibration_error,
    kolmogorov_smirnov_error,
    murphy,
    negative_log_likelihood,
    output_ratio,
)
from coterie.evaluation.metrics.discrimination import (
    accuracy_at_coverage,
    area_under_risk_coverage,
    discrimination,
    discrimination_columns,
    within_question_auroc,
)
from coterie.evaluation.metrics.intervals import bootstrap
from coterie.evaluation.metrics.means import Floats, mean_at_n, variance
from coterie.evaluation.metrics.passk import shapley_shares, subset_unions

_MEASURES: Mapping[str, Callable[[Floats, Floats], float]] = {
    "ece_15": partial(expected_calibration_error, bins=15),
    "ece_right_closed": partial(expected_calibration_error, closed="right"),
    "ece_missing_as_zero": partial(expected_calibration_error, missing="zero"),
    "ece_adaptive": adaptive_calibration_error,
    "ks": kolmogorov_smirnov_error,
    "brier": brier,
    "nll": negative_log_likelihood,
    "aurc": area_under_risk_coverage,
    "accuracy_at_80%": accuracy_at_coverage,
}
"""Of all responses together, without intervals."""


def reliability(
    sets: Sequence[Mapping[str, Responses]], *, resamples: int, seed: int
) -> dict[str, dict[str, Any]]:
    """Policy -> variance of its scores, and calibration of what it states (``stated``) and of how
    often it agrees with itself (``agreement``), where there are any."""
    found: dict[str, dict[str, Any]] = {}
    for name in sets[0]:
        correct_QN = np.concatenate([answered[name].correct_QN for answered in sets])
        found[name] = {"variance": variance(correct_QN)}
        kinds = {
            "stated": [answered[name].confidence_QN for answered in sets],
            "agreement": [answered[name].agreement_QN() for answered in sets],
        }
        for kind, parts in kinds.items():
            confidence_QN = np.concatenate(parts)
            if not np.isnan(confidence_QN).all():
                found[name][kind] = _calibration(
                    confidence_QN, correct_QN, resamples=resamples, seed=seed
                )
    return found


def _calibration(
    confidence_QN: Floats, correct_QN: Floats, *, resamples: int, seed: int
) -> dict[str, Any]:
    how = {"resamples": resamples, "seed": seed}
    columns = calibration_columns(confidence_QN, correct_QN)
    ece = bootstrap(columns, calibration_error, **how)
    auroc = bootstrap(discrimination_columns(confidence_QN, correct_QN), discrimination, **how)
    asked = ~np.isnan(correct_QN)
    flat = confidence_QN.ravel(), correct_QN.ravel()
    return {
        "ece": ece,
        "auroc": auroc,
        "auroc_within": within_question_auroc(confidence_QN, correct_QN),
        "output_ratio": output_ratio(confidence_QN[asked]),
        **{name: measure(*flat) for name, measure in _MEASURES.items()},
        "murphy": murphy(*flat),
        "discreteness": discreteness(flat[0]),
    }


def shares(sets: Sequence[Mapping[str, Responses]]) -> dict[str, dict[str, Any]]:
    """``unions``: every subset of policies -> share of questions that one answer of each holds a
    right one to; ``shapley``: policy -> its part in that of all, from the first answer of each."""
    correct = {
        name: np.concatenate([answered[name].correct_QN for answered in sets]) for name in sets[0]
    }
    unions = subset_unions({name: mean_at_n(right_QN) for name, right_QN in correct.items()})
    parts = shapley_shares({name: right_QN[:, 0] for name, right_QN in correct.items()})
    return {
        "unions": {"+".join(policies): value for policies, value in unions.items()},
        "shapley": parts,
    }
