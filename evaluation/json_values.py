"""Results as JSON data: finite numbers, plain containers, figures with their intervals."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.evaluation.metrics.intervals import Estimate, Resampled


def plain_number(value: float) -> float | None:
    """Round ``value`` to six decimals; None if it is not finite, as JSON has no such number."""
    return round(float(value), 6) if math.isfinite(value) else None


class Exact(float):
    """A number that JSON keeps unrounded: a threshold may lie just above a confidence."""


def as_json(value: Any) -> Any:
    """Convert ``value`` to JSON data.

    A figure becomes its value and 95 % interval, a mean over seeds also their number, a dataclass
    its fields, an array a list, a float :func:`plain_number`.
    """
    if isinstance(value, Resampled):
        return {"value": plain_number(value.value), "interval": as_json(value.interval())}
    if isinstance(value, Estimate):
        bounds = as_json((value.low, value.high))
        return {"mean": plain_number(value.value), "interval": bounds, "count": value.count}
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: as_json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return float(value) if isinstance(value, Exact) else plain_number(value)
    return str(value) if isinstance(value, Path) else value
