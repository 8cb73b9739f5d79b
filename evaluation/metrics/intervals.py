"""Intervals: percentile bootstrap over questions, and Student's t over seeds."""

# Q questions, M columns of values, R resamples, S seeds

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats, mean_present, ratio

RESAMPLES = 10_000
MOST_RESAMPLES = 1_000_000
"""Upper bound for users: every metric stores a number per resample, and intervals have converged
long before."""
FEWEST = 16
"""Questions that a mark needs: with fewer, the percentile interval of a difference is too short,
and leaves out 0 by chance up to five times as often as once in twenty times."""
_LEVEL = 0.95
_CHUNK = 4_000_000  # numbers in memory at a time


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its interval. NaN throughout where nothing was measured."""

    value: float
    low: float
    high: float
    count: int
    """Seeds behind it."""


@dataclass(frozen=True)
class Resampled:
    """A value with its bootstrap over questions, all of it, so that two values can be compared."""

    value: float
    replicates: Floats
    """(R,) the value on each resample; resamples of two of them pair up when they come from the
    same questions and seed."""
    count: int
    """What the value is a mean over: questions, or the eligible cases of a rate."""

    def interval(self) -> tuple[float, float]:
        """95 % percentile interval; NaN of a single question, and where no resample defines the
        value."""
        return interval(self.replicates if self.count > 1 else ())

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return self.interval()[1]

    @property
    def excludes_zero(self) -> bool:
        """Whether the 95 % interval leaves out 0, with at least :data:`FEWEST` questions."""
        low, high = self.interval()
        return self.count >= FEWEST and (low > 0 or high < 0)


def resampled_means(
    values_QM: npt.ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """(R, M) column means over questions drawn with replacement.

    Args:
        values_QM: a resample takes whole rows, so that columns stay paired; NaN values are left
            out of their column's mean.
        resamples: number of resamples, R.
        seed: seed of the resamples.
    """
    values_QM = as_floats(values_QM)
    questions, columns = values_QM.shape
    means_RM = np.full((resamples, columns), np.nan)
    if not questions:
        return means_RM
    present_QM = ~np.isnan(values_QM)
    known_QM = np.where(present_QM, values_QM, 0.0)
    complete = bool(present_QM.all())
    random = np.random.default_rng(seed)
    step = max(1, _CHUNK // questions)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = random.integers(0, questions, (rows, questions), dtype=np.int64)
        drawn += questions * np.arange(rows)[:, None]
        times_RQ = np.bincount(drawn.ravel(), minlength=rows * questions)
        times_RQ = times_RQ.reshape(rows, questions).astype(np.float64)
        count = questions if complete else times_RQ @ present_QM.astype(np.float64)
        means_RM[start : start + rows] = ratio(times_RQ @ known_QM, count)
    return means_RM


def interval(samples_R: npt.ArrayLike) -> tuple[float, float]:
    """95 % percentile interval of resampled values, undefined ones left out."""
    samples_R = as_floats(samples_R)
    samples_R = samples_R[~np.isnan(samples_R)]
    if not len(samples_R):
        return float("nan"), float("nan")
    low, high = np.quantile(samples_R, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def bootstrap(
    values_QM: npt.ArrayLike,
    statistic: Callable[[Floats], npt.ArrayLike],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Resampled:
    """A function of column means, with its bootstrap over questions.

    Args:
        values_QM: as of :func:`resampled_means`.
        statistic: means of shape (..., M) -> (...): a ratio of two columns, the largest of several,
            a correlation of indicators.
        resamples: number of resamples.
        seed: seed of the resamples.
    """
    values_QM = as_floats(values_QM)
    value = float(np.asarray(statistic(mean_present(values_QM, axis=0))))
    samples_R = as_floats(statistic(resampled_means(values_QM, resamples=resamples, seed=seed)))
    return Resampled(value, samples_R, int((~np.isnan(values_QM)).any(axis=1).sum()))


def mean_intervals(
    values_QM: npt.ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Resampled]:
    """The mean of each column, all with the same resamples."""
    values_QM = as_floats(values_QM)
    means_RM = resampled_means(values_QM, resamples=resamples, seed=seed)
    counts = (~np.isnan(values_QM)).sum(axis=0)
    return [
        Resampled(float(value), samples_R, int(count))
        for value, samples_R, count in zip(
            mean_present(values_QM, axis=0), means_RM.T, counts, strict=True
        )
    ]


def t_interval(values_S: npt.ArrayLike) -> Estimate:
    """Mean over seeds with the 95 % interval ``mean +- t_{S-1} s / sqrt(S)`` (Student 1908).

    Undefined values are left out; a single value has no interval.
    """
    from scipy.special import stdtrit

    values_S = as_floats(values_S)
    values_S = values_S[~np.isnan(values_S)]
    count = len(values_S)
    if not count:
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    mean = float(values_S.mean())
    if count == 1:
        return Estimate(mean, float("nan"), float("nan"), 1)
    half = stdtrit(count - 1, (1 + _LEVEL) / 2) * values_S.std(ddof=1) / np.sqrt(count)
    return Estimate(mean, mean - float(half), mean + float(half), count)
