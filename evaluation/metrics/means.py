"""Means that leave out NaN, and the variance of scores between and within questions."""

# Q questions, N samples

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def as_floats(values: npt.ArrayLike) -> Floats:
    """The values as floats; NaN stays NaN."""
    return np.asarray(values, dtype=np.float64)


def ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Floats:
    """Elementwise quotient, NaN where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(as_floats(numerator), as_floats(denominator))
    return np.divide(
        numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator != 0
    )


def mean_present(values: npt.ArrayLike, axis: int | None = None) -> Floats:
    """Mean without NaN along ``axis`` (None: over all values); NaN where no value is left."""
    values = as_floats(values)
    present = ~np.isnan(values)
    return ratio(np.where(present, values, 0.0).sum(axis=axis), present.sum(axis=axis))


@dataclass(frozen=True)
class Variance:
    """Population variances of scores (EAPO, arXiv:2509.23730, reports the first).

    Example: questions always right and always wrong give between .25, within 0; coin flips on
    every question give between 0, within .25.
    """

    between: float
    """Variance of the questions' means: (1/Q) sum (mu_q - mu)^2."""
    within: float
    """Mean over questions of the variance of their samples."""


def mean_at_n(score_QN: npt.ArrayLike) -> Floats:
    """(Q,) mean score over a question's samples: accuracy, "avg@n"."""
    return mean_present(score_QN, axis=1)


def variance(score_QN: npt.ArrayLike) -> Variance:
    """Split the variance of (Q, N) scores; questions without samples are left out."""
    score_QN = as_floats(score_QN)
    score_QN = score_QN[~np.isnan(score_QN).all(axis=1)]
    mean_Q = mean_at_n(score_QN)
    var_Q = mean_present((score_QN - mean_Q[:, None]) ** 2, axis=1)
    between = mean_present((mean_Q - mean_present(mean_Q)) ** 2)
    return Variance(float(between), float(mean_present(var_Q)))
