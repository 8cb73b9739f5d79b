"""Numbers that a setting cannot have."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from evaluation.metrics.intervals import MOST_RESAMPLES
from vocabulary import UserError


def check_seeds(seeds: Iterable[int], flag: str = "--seed") -> None:
    """Raises:
    UserError: a seed that no generator takes.
    """
    if not all(0 <= seed < 2**63 for seed in seeds):
        raise UserError(f"{flag} must be 0 to 2^63 - 1")


def check_temperature(temperature: float, flag: str = "--temperature") -> None:
    """Raises:
    UserError: a sampling temperature that cannot be; 0 is greedy.
    """
    if not 0 <= temperature < math.inf:
        raise UserError(f"{flag} must not be negative, and finite")


def check_resamples(count: int, flag: str) -> None:
    """Raises:
    UserError: more resamples than fit into memory.
    """
    if count > MOST_RESAMPLES:
        raise UserError(f"{flag} is {count}; it must be at most {MOST_RESAMPLES}")


def check_no_nan(settings: Any, at: str = "--") -> None:
    """Refuse NaN, which passes every comparison that looks for what is wrong.

    Args:
        settings: a tree of dataclasses, mappings and tuples.
        at: what the flags of ``settings`` begin with.

    Raises:
        UserError: one sentence that names the flag.
    """
    if isinstance(settings, float) and math.isnan(settings):
        raise UserError(f"{at.rstrip('.')} is not a number (nan)")
    items: Iterable[tuple[str, Any]] = ()
    if dataclasses.is_dataclass(settings):
        items = ((f.name, getattr(settings, f.name)) for f in dataclasses.fields(settings))
    elif isinstance(settings, Mapping):
        items = settings.items()
    elif isinstance(settings, list | tuple):
        for item in settings:
            check_no_nan(item, at)
    for name, value in items:
        # The run's own flags stand at the top.
        check_no_nan(value, at if name == "run" else f"{at}{str(name).replace('_', '-')}.")
