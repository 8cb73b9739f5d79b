"""Intervals over runs that differ in their seed alone: Student's t (Student 1908)."""

# S seeds

import numpy as np
import numpy.typing as npt

from evaluation.metrics.bootstrap import Estimate
from evaluation.metrics.present import as_floats


def t_interval(values_S: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Mean of what each seed gave, with the interval ``mean +- t_{S-1} s / sqrt(S)``.

    Undefined values are left out; a single one has a mean and no interval.
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
    half = stdtrit(count - 1, (1 + level) / 2) * values_S.std(ddof=1) / np.sqrt(count)
    return Estimate(mean, mean - float(half), mean + float(half), count)
