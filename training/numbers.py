"""Numbers that a setting cannot have."""

import math
from collections.abc import Iterable

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
