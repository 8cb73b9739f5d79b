"""Engineered errors: where a role goes wrong, how, and how often."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from problems.chains import OPERATIONS

Entry = tuple[str, int, int]
"""Sign, left and right operand."""


@dataclass(frozen=True)
class Habits:
    """For each weak table entry one fixed wrong value and how likely it is to be written."""

    wrong: Mapping[Entry, tuple[int, float]]

    def write(self, sign: str, left: int, right: int, uniform: Callable[[], float]) -> int:
        """The value that the role writes for one operation."""
        value, probability = self.wrong.get((sign, left, right), (0, 0.0))
        if probability and uniform() < probability:
            return value
        return OPERATIONS[sign](left, right)


def draw_habits(weak: str, bounds: tuple[float, float], uniform: Callable[[], float]) -> Habits:
    """Every entry of the ``weak`` operations gets a wrong value and a probability in ``bounds``."""
    wrong: dict[Entry, tuple[int, float]] = {}
    for sign in weak:
        for left in range(10):
            for right in range(10):
                shift = 1 + int(uniform() * 9)
                value = (OPERATIONS[sign](left, right) + shift) % 10
                wrong[sign, left, right] = (value, bounds[0] + uniform() * (bounds[1] - bounds[0]))
    return Habits(wrong)


def habits_of(role: str, weak: str, bounds: tuple[float, float]) -> Habits:
    """The habits of one role; the same at every rebuild, whatever its seed."""
    return draw_habits(weak, bounds, random.Random(f"habits of {role}").random)
