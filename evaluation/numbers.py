"""How a figure is written: in JSON, and in a table."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.metrics.intervals import Estimate


def plain_number(value: float) -> float | None:
    """JSON has no NaN and no infinity: what is undefined is null. Rounded, for a reader."""
    return round(float(value), 6) if math.isfinite(value) else None


class Exact(float):
    """A number that is not rounded in JSON: a threshold just above a confidence is not it."""


def as_json(value: Any) -> Any:
    """``value`` as JSON data: a figure with its 95 % interval, a dataclass by its fields, arrays
    as lists, numbers by :func:`plain_number`."""
    if isinstance(value, Resampled):
        return {"value": plain_number(value.value), "interval": as_json(value.interval())}
    if isinstance(value, Estimate):
        return {"mean": plain_number(value.value), "interval": as_json((value.low, value.high))}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, float):
        return float(value) if isinstance(value, Exact) else plain_number(value)
    return str(value) if isinstance(value, Path) else value


def without_zero(value: float, decimals: int = 2, sign: str = "") -> str:
    """Without the leading zero: .913, 1.000, -.02; ``sign`` ``+`` shows that of positive ones."""
    text = f"{value:{sign}.{decimals}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text
