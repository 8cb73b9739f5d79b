"""How a number is written: in JSON, and in a table."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any


def plain_number(value: float) -> float | None:
    """JSON has no NaN and no infinity: what is undefined is null. Rounded, for a reader."""
    return round(float(value), 6) if math.isfinite(value) else None


def plain_numbers(parts: Any) -> dict[str, float | None]:
    """A dataclass of numbers, for JSON."""
    return {name: plain_number(value) for name, value in asdict(parts).items()}


def with_interval(value: float, bounds: Iterable[float]) -> dict[str, Any]:
    """A value and its interval, for JSON."""
    return {
        "value": plain_number(value),
        "interval": [plain_number(bound) for bound in bounds],
    }


def without_zero(value: float, decimals: int = 2, sign: str = "") -> str:
    """Without the leading zero: .913, 1.000, -.02; ``sign`` ``+`` shows that of positive ones."""
    text = f"{value:{sign}.{decimals}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text
