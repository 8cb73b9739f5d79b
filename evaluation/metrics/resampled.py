"""Calibration and discrimination as functions of column means, so that they can be resampled.

A column holds one sum per question; a metric of all responses is a function of the columns' means,
the same for the data and for every resample of questions (:func:`bootstrap.resampled_means`).
"""

# Q questions, S responses of each, M columns, V distinct confidences; NaN: missing

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.calibration import bin_index
from coterie.evaluation.metrics.means import Floats, as_floats, ratio


def calibration_columns(
    confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike, bins: int = 10
) -> Floats:
    """(Q, bins + 1): the sum of ``y - p`` in each bin (left-closed), and the responses stated."""
    stated_QS, gap_QS = _gaps(confidence_QS, correct_QS)
    questions = len(stated_QS)
    columns_QM = np.zeros((questions, bins + 1))
    row_N = np.nonzero(stated_QS)[0]
    index_N = bin_index(as_floats(confidence_QS)[stated_QS], bins)
    np.add.at(columns_QM, (row_N, index_N), gap_QS[stated_QS])
    columns_QM[:, bins] = stated_QS.sum(axis=1)
    return columns_QM


def calibration_error(means: npt.ArrayLike) -> Floats:
    """Expected calibration error from means of :func:`calibration_columns`, (..., M) -> (...)."""
    means = as_floats(means)
    return ratio(np.abs(means[..., :-1]).sum(axis=-1), means[..., -1])


def discrimination_columns(confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike) -> Floats:
    """(Q, 2 V): how often each distinct confidence, in rising order, was wrong, then right."""
    confidence_QS, correct_QS = as_floats(confidence_QS), as_floats(correct_QS)
    stated_QS, _ = _gaps(confidence_QS, correct_QS)
    row_N = np.nonzero(stated_QS)[0]
    values_V, place_N = np.unique(confidence_QS[stated_QS], return_inverse=True)
    right_N = correct_QS[stated_QS] > 0
    columns_QM = np.zeros((len(stated_QS), 2 * len(values_V)))
    np.add.at(columns_QM, (row_N, place_N + len(values_V) * right_N), 1.0)
    return columns_QM


def discrimination(means: npt.ArrayLike) -> Floats:
    """AUROC from means of :func:`discrimination_columns`, (..., M) -> (...)."""
    means = as_floats(means)
    wrong, right = np.split(means, 2, axis=-1)
    below = np.cumsum(wrong, axis=-1) - wrong / 2
    return ratio((right * below).sum(axis=-1), right.sum(axis=-1) * wrong.sum(axis=-1))


def _gaps(
    confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike
) -> tuple[npt.NDArray[np.bool_], Floats]:
    gap_QS = as_floats(correct_QS) - as_floats(confidence_QS)
    return ~np.isnan(gap_QS), gap_QS
