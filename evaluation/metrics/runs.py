"""Means and standard deviations over runs: run s is the s-th response to every question.

COREA (arXiv:2603.03752) reports its figures so, over ten runs.
"""

# Q questions, S responses of each

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.calibration import expected_calibration_error, output_ratio
from coterie.evaluation.metrics.discrimination import auroc
from coterie.evaluation.metrics.means import as_floats, mean_present


@dataclass(frozen=True)
class OverRuns:
    """A figure over runs."""

    mean: float
    std: float
    """Standard deviation of the sample (divided by S - 1); NaN for fewer than two runs."""


def over_runs(values_S: npt.ArrayLike) -> OverRuns:
    """Mean and standard deviation of the runs in which the figure is defined.

    Args:
        values_S: the figure in each run; NaN: undefined.
    """
    values_S = as_floats(values_S)
    known_S = values_S[~np.isnan(values_S)]
    std = float(known_S.std(ddof=1)) if len(known_S) > 1 else float("nan")
    return OverRuns(float(mean_present(values_S)), std)


def calibration_over_runs(
    confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike
) -> dict[str, OverRuns]:
    """``accuracy``, ``ece``, ``auroc`` and ``output_ratio``, each computed run by run.

    Args:
        confidence_QS: stated confidences; NaN: none was stated.
        correct_QS: 1 where the response is right, else 0; NaN: there is none.
    """
    confidence_QS, correct_QS = as_floats(confidence_QS), as_floats(correct_QS)
    runs = list(zip(confidence_QS.T, correct_QS.T, strict=True))
    return {
        "accuracy": over_runs([float(mean_present(right_Q)) for _, right_Q in runs]),
        "ece": over_runs([expected_calibration_error(*run) for run in runs]),
        "auroc": over_runs([auroc(*run) for run in runs]),
        "output_ratio": over_runs([output_ratio(stated[~np.isnan(y)]) for stated, y in runs]),
    }


def averaged_over_sets(
    sets: Sequence[Mapping[str, OverRuns]], questions: Sequence[int]
) -> dict[str, OverRuns]:
    """Average means and deviations over sets, weighted by questions; NaN if a set lacks the figure.

    The paper averages so: in its tables 12 and 13, the deviations of the untrained model are 1.5,
    1.2, .5, 1.0, 1.0 and .9 over 500, 500, 1,319, 674, 448 and 1,221 questions, and .9 in table 2.

    Args:
        sets: name -> figure, of each set.
        questions: number of questions of each set.
    """
    weights = as_floats(questions) / sum(questions)
    return {
        name: OverRuns(
            float(sum(w * figures[name].mean for w, figures in zip(weights, sets))),
            float(sum(w * figures[name].std for w, figures in zip(weights, sets))),
        )
        for name in sets[0]
    }
