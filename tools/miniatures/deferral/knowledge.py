"""Engineered knowledge: which constants a role knows, gets wrong, or gets right now and then."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from launch.tiny.deferral.recipes import DeferralRecipe
from problems.recall import HIDDEN, names, value_of

Uniform = Callable[[], float]


@dataclass(frozen=True)
class Fact:
    """What a role makes of one name."""

    right: float
    """Probability of writing its value."""
    wrong: int
    """What it writes otherwise."""


@dataclass(frozen=True)
class Knowledge:
    """What a role makes of every operand."""

    facts: Mapping[str, Fact]

    def write(self, operand: str, uniform: Uniform) -> int:
        """The digit that the role writes for a digit, a name or ``?``."""
        if operand == HIDDEN:
            return int(uniform() * 10)
        if operand.isdigit():
            return int(operand)
        fact = self.facts[operand]
        return value_of(operand) if uniform() < fact.right else fact.wrong

    def believed(self, name: str) -> int:
        """The digit that the role most often takes ``name`` for."""
        fact = self.facts[name]
        return value_of(name) if fact.right >= 0.5 else fact.wrong

    def chance(self, operands: Sequence[str]) -> float:
        """Probability that every operand is written right."""
        product = 1.0
        for operand in operands:
            if operand == HIDDEN:
                product *= 0.1
            elif not operand.isdigit():
                product *= self.facts[operand].right
        return product


def knowledge_of(recipe: DeferralRecipe) -> Knowledge:
    """The knowledge of one role; the same at every rebuild, whatever its seed."""
    uniform = random.Random(f"knowledge of {recipe.role}").random
    low, high = recipe.now_and_then
    facts: dict[str, Fact] = {}
    for name in names():
        mark = uniform()
        if mark < recipe.known:
            right = 1.0
        elif mark < recipe.known + recipe.mistaken:
            right = 0.0
        else:
            right = low + uniform() * (high - low)
        shift = 1 + int(uniform() * 9)
        facts[name] = Fact(right, (value_of(name) + shift) % 10)
    return Knowledge(facts)
