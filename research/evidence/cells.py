"""How the tables of the evidence write numbers."""

from collections.abc import Sequence

import numpy as np

from coterie.evaluation.metrics.intervals import t_interval
from coterie.evaluation.table import without_zero


def signed(value: float) -> str:
    """Format with three decimals and a sign."""
    return f"{'+' if value >= 0 else '−'}{without_zero(abs(value), 3)}"


def mean(values: Sequence[float], digits: int = 3) -> str:
    """Format the mean of ``values``, at least one."""
    return without_zero(float(np.mean(values)), digits)


def each(values: Sequence[float]) -> str:
    """Format the mean, and each value in order: ``**.550** (.500 .600)``."""
    return f"**{mean(values)}** ({' '.join(without_zero(value, 3) for value in values)})"


def change(differences: Sequence[float]) -> str:
    """Format the mean and its 95 % interval by t: ``+.100 [−.050, +.250]``; of a single
    difference there is no interval, and of none nothing."""
    if not differences:
        return ""
    interval = t_interval(differences)
    spread = "" if np.isnan(interval.low) else f" [{signed(interval.low)}, {signed(interval.high)}]"
    return signed(interval.value) + spread


def plus_minus(values: Sequence[float | None]) -> str:
    """Format the mean ± half of its 95 % interval by t: ``.500 ± .020``, of those that are known;
    where some are not, with how many (``(4 of 5)``)."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    interval = t_interval(known)
    counted = "" if len(known) == len(values) else f" ({len(known)} of {len(values)})"
    spread = (
        "" if np.isnan(interval.low) else f" ± {without_zero(interval.high - interval.value, 3)}"
    )
    return f"{without_zero(interval.value, 3)}{spread}{counted}"
