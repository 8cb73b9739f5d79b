"""Arrays in which NaN marks what does not exist."""

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
    """Mean of what exists along ``axis`` (of everything without it); NaN where nothing does."""
    values = as_floats(values)
    present = ~np.isnan(values)
    return ratio(np.where(present, values, 0.0).sum(axis=axis), present.sum(axis=axis))
