"""Calibration: whether stated confidences match observed accuracy."""

# N responses, G groups (bins or distinct values), Q questions, S responses of each, M columns;
# NaN confidence: none was stated

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats, ratio

Closed = Literal["left", "right"]

_MICRO = 10**6
_CLIP = 1e-3


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
    return _weighted_gap(confidence_N, correct_N, bin_index(confidence_N, bins, closed))


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


def adaptive_calibration_error(
    confidence_N: npt.ArrayLike,
    correct_N: npt.ArrayLike,
    *,
    bins: int = 10,
) -> float:
    """Expected calibration error over bins of (nearly) equal numbers of responses
    (arXiv:1904.01685).

    Responses of equal confidence are interchangeable: each counts with their mean correctness, so
    that the value does not depend on their order.
    """
    confidence_N, correct_N = _known(confidence_N, correct_N)
    order_N = np.argsort(confidence_N, kind="stable")
    shared_N = _mean_by_value(confidence_N, correct_N)
    index_N = np.empty(len(order_N), dtype=np.int64)
    for index, members in enumerate(np.array_split(order_N, bins)):
        index_N[members] = index
    return _weighted_gap(confidence_N, shared_N, index_N)


def kolmogorov_smirnov_error(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> float:
    """``max_t |sum_{p <= t} (y - p)| / N``: calibration without bins (arXiv:2006.12800)."""
    confidence_N, correct_N = _known(confidence_N, correct_N)
    if not len(confidence_N):
        return float("nan")
    _, group_N = np.unique(confidence_N, return_inverse=True)
    gap_G = np.bincount(group_N, weights=correct_N - confidence_N)
    return float(np.abs(np.cumsum(gap_G)).max() / len(confidence_N))


def brier(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> float:
    """``mean (p - y)^2``."""
    confidence_N, correct_N = _known(confidence_N, correct_N)
    return _mean((confidence_N - correct_N) ** 2)


@dataclass(frozen=True)
class Murphy:
    """Brier = reliability - resolution + uncertainty, exactly (Murphy 1973)."""

    reliability: float
    """Squared gap between each stated value and the accuracy behind it; 0 is calibrated."""
    resolution: float
    """How far those accuracies spread around the mean; more is better."""
    uncertainty: float
    """Variance of correctness."""


def murphy(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> Murphy:
    """The decomposition over distinct stated values, for which it holds without remainder."""
    confidence_N, correct_N = _known(confidence_N, correct_N)
    shared_N = _mean_by_value(confidence_N, correct_N)
    base = _mean(correct_N)
    return Murphy(
        reliability=_mean((confidence_N - shared_N) ** 2),
        resolution=_mean((shared_N - base) ** 2),
        uncertainty=base * (1.0 - base),
    )


def negative_log_likelihood(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> float:
    """Mean ``-ln`` of the probability given to what happened, confidences clipped to
    [.001, .999]; in nats."""
    confidence_N, correct_N = _known(confidence_N, correct_N)
    clipped_N = np.clip(confidence_N, _CLIP, 1.0 - _CLIP)
    return _mean(-np.log(np.where(correct_N > 0, clipped_N, 1.0 - clipped_N)))


def output_ratio(confidence_N: npt.ArrayLike) -> float:
    """Share of responses that state a valid confidence."""
    return _mean(~np.isnan(as_floats(confidence_N)))


@dataclass(frozen=True)
class Discreteness:
    """How few values a model's confidences take."""

    distinct: int
    entropy: float
    """Entropy of the stated values, in nats."""
    extreme_share: float
    """Share of them that is exactly 0 or 1."""


def discreteness(confidence_N: npt.ArrayLike) -> Discreteness:
    """How few values the stated confidences take; NaN in ``confidence_N``: none was stated."""
    confidence_N = as_floats(confidence_N)
    stated_N = confidence_N[~np.isnan(confidence_N)]
    if not len(stated_N):
        return Discreteness(0, float("nan"), float("nan"))
    values_G, count_G = np.unique(stated_N, return_counts=True)
    share_G = count_G / len(stated_N)
    extreme = float(share_G[(values_G == 0) | (values_G == 1)].sum())
    return Discreteness(len(values_G), abs(float((share_G * np.log(share_G)).sum())), extreme)


def _known(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Keep the responses with both a confidence and a verdict."""
    confidence_N, correct_N = as_floats(confidence_N), as_floats(correct_N)
    if confidence_N.shape != correct_N.shape:
        raise ValueError(f"{confidence_N.shape} confidences, {correct_N.shape} correctness values")
    known_N = ~np.isnan(confidence_N) & ~np.isnan(correct_N)
    return confidence_N[known_N], correct_N[known_N]


def _weighted_gap(confidence_N: Floats, correct_N: Floats, index_N: npt.NDArray[np.int64]) -> float:
    # sum_b |B_b| / N |acc_b - conf_b| = sum_b |sum_{i in b} (y_i - p_i)| / N
    if not len(confidence_N):
        return float("nan")
    gap_G = np.bincount(index_N, weights=correct_N - confidence_N)
    return float(np.abs(gap_G).sum() / len(confidence_N))


def _mean_by_value(confidence_N: Floats, correct_N: Floats) -> Floats:
    _, group_N = np.unique(confidence_N, return_inverse=True)
    size_G = np.bincount(group_N)
    return ratio(np.bincount(group_N, weights=correct_N), size_G)[group_N]


def _mean(values_N: npt.ArrayLike) -> float:
    values_N = as_floats(values_N)
    return float(values_N.mean()) if len(values_N) else float("nan")
