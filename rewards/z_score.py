"""Rewards of different kinds on one scale."""

# B traces of one question

import numpy as np
import numpy.typing as npt

_ROUNDING = 1e-9


def z_score(values_B: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """(B,) distance from the mean in population standard deviations; zeros where all are equal."""
    values_B = np.asarray(values_B, dtype=np.float64)
    if not len(values_B) or np.ptp(values_B) <= _ROUNDING:
        return np.zeros(len(values_B))
    return (values_B - values_B.mean()) / values_B.std()
