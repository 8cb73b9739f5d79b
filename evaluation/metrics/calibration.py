"""Calibration: whether stated confidences match observed accuracy."""

# N responses, G bins, Q questions, S responses of each, M columns;
# NaN confidence: none was stated

from typing import Literal

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats, mean_present, ratio

Closed = Literal["left", "right"]

_MICRO = 10**6


def bin_index(
    confidence_N: npt.ArrayLike, bins: int = 10, closed: Closed = "left"
) -> npt.NDArray[np.int64]:
    """(N,) index of the equal-width bin of each confidence.

    Computed in millionths, as bin edges in floating point put 0.3, 0.6 and 0.7 into the wrong bin.

    Args:
        confidence_N: in [0, 1].
        bins: number of bins.
        closed: ``left``: [a, b), the last bin closed; ``right``: (a, b], the first closed.

    Raises:
        ValueError: a confidence is NaN, or outside of [0, 1].
    """
    confidence_N = as_floats(confidence_N)
    if not ((confidence_N >= 0) & (confidence_N <= 1)).all():
        raise ValueError("confidences lie in [0, 1]; a missing one is left out, not binned")
    scaled_N = np.rint(confidence_N * _MICRO).astype(np.int64) * bins
    if closed == "left":
        return np.minimum(scaled_N // _MICRO, bins - 1)
    return np.maximum(-(-scaled_N // _MICRO) - 1, 0)


def expected_calibration_error(
    confidence_N: npt.ArrayLike,
    correct_N: npt.ArrayLike,
    *,
    bins: int = 10,
    closed: Closed = "left",
    missing: Literal["exclude", "zero"] = "exclude",
) -> float:
    """``sum_b |B_b| / N |accuracy_b - confidence_b|`` over equal-width bins (arXiv:1706.04599).

    Name the convention wherever the number is printed: left and right closure differ by as much as
    .06 on ten points.

    Args:
        confidence_N: in [0, 1]; NaN: none was stated.
        correct_N: 0 or 1 each.
        bins: number of bins.
        closed: as of :func:`bin_index`.
        missing: whether a missing confidence is left out, or counts as 0.
    """
    if missing == "zero":
        confidence_N = np.nan_to_num(as_floats(confidence_N))
    confidence_N, correct_N = _known(confidence_N, correct_N)
    if not len(confidence_N):
        return float("nan")
    # sum_b |B_b| / N |acc_b - conf_b| = sum_b |sum_{i in b} (y_i - p_i)| / N
    index_N = bin_index(confidence_N, bins, closed)
    gap_G = np.bincount(index_N, weights=correct_N - confidence_N)
    return float(np.abs(gap_G).sum() / len(confidence_N))


def calibration_columns(
    confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike, bins: int = 10
) -> Floats:
    """(Q, bins + 1): the sum of ``y - p`` in each bin (left-closed), and the number of confidences.

    The error of all responses is a function of the columns' means, for the data and for every
    resample of questions.
    """
    gap_QS = as_floats(correct_QS) - as_floats(confidence_QS)
    stated_QS = ~np.isnan(gap_QS)
    columns_QM = np.zeros((len(stated_QS), bins + 1))
    row_N = np.nonzero(stated_QS)[0]
    index_N = bin_index(as_floats(confidence_QS)[stated_QS], bins)
    np.add.at(columns_QM, (row_N, index_N), gap_QS[stated_QS])
    columns_QM[:, bins] = stated_QS.sum(axis=1)
    return columns_QM


def calibration_error(means: npt.ArrayLike) -> Floats:
    """Expected calibration error from means of :func:`calibration_columns`, (..., M) -> (...)."""
    means = as_floats(means)
    return ratio(np.abs(means[..., :-1]).sum(axis=-1), means[..., -1])


def brier(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> float:
    """``mean (p - y)^2``."""
    confidence_N, correct_N = _known(confidence_N, correct_N)
    return float(mean_present((confidence_N - correct_N) ** 2))


def output_ratio(confidence_N: npt.ArrayLike) -> float:
    """Share of responses that state a valid confidence."""
    return float(mean_present(~np.isnan(as_floats(confidence_N))))


def _known(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Keep the responses with both a confidence and a verdict."""
    confidence_N, correct_N = as_floats(confidence_N), as_floats(correct_N)
    if confidence_N.shape != correct_N.shape:
        raise ValueError(f"{confidence_N.shape} confidences, {correct_N.shape} correctness values")
    known_N = ~np.isnan(confidence_N) & ~np.isnan(correct_N)
    return confidence_N[known_N], correct_N[known_N]
