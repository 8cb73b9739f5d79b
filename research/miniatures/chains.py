"""Chains as imperfect roles work them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from coterie.problems.chains import OPERATIONS, Chain, ChainSettings, draw_chain
from miniatures.recipe import Example, Phases, Recipe

Entry = tuple[str, int, int]
"""Sign, left and right operand."""
Uniform = Callable[[], float]
Examples = Callable[[list[Chain]], list[Example]]
"""What a role reads of the chains of a batch."""


@dataclass(frozen=True)
class Habits:
    """A fixed wrong value, and its probability, for each weak table entry."""

    wrong: Mapping[Entry, tuple[int, float]]

    def write(self, sign: str, left: int, right: int, uniform: Uniform) -> int:
        """Return the value that the role writes for one operation."""
        value, probability = self.wrong.get((sign, left, right), (0, 0.0))
        if probability and uniform() < probability:
            return value
        return OPERATIONS[sign](left, right)


def draw_habits(weak: str, bounds: tuple[float, float], uniform: Uniform) -> Habits:
    """Every entry of the ``weak`` operations gets a wrong value and a probability in ``bounds``."""
    wrong: dict[Entry, tuple[int, float]] = {}
    for sign in weak:
        for left in range(10):
            for right in range(10):
                shift = 1 + int(uniform() * 9)
                value = (OPERATIONS[sign](left, right) + shift) % 10
                wrong[sign, left, right] = (value, bounds[0] + uniform() * (bounds[1] - bounds[0]))
    return Habits(wrong)


def habits_of(recipe: Recipe) -> Habits:
    """Return one role's habits; they are the same at every rebuild, whatever the seed."""
    uniform = random.Random(f"habits of {recipe.role}").random
    return draw_habits(recipe.weak, recipe.wrong, uniform)


def draw_length(uniform: Uniform) -> int:
    """Draw a number of operations from the team's distribution."""
    usual = ChainSettings()
    return usual.min_length + int(uniform() * (usual.max_length - usual.min_length + 1))


def draw_strong(operators: str, length: int, uniform: Uniform) -> Chain:
    """Draw a chain with these ``operators`` only."""
    signs = "".join(operators[int(uniform() * len(operators))] for _ in range(length))
    return Chain(tuple(int(uniform() * 10) for _ in range(length + 1)), signs)


def draw_any(length: int, uniform: Uniform) -> Chain:
    """Draw a chain of the mix of families on which the team is trained and measured."""
    return draw_chain(ChainSettings(min_length=length, max_length=length), uniform)[1]


def own_values(chain: Chain, habits: Habits, uniform: Uniform) -> list[int]:
    """Return each value by habit, passed on as it was written, right or wrong."""
    return _values(chain, lambda sign, left, right: habits.write(sign, left, right, uniform))


def scrambled_values(chain: Chain, uniform: Uniform, share: float) -> list[int]:
    """Return right values except for a ``share`` of random ones, each passed on."""

    def write(sign: str, left: int, right: int) -> int:
        return int(uniform() * 10) if uniform() < share else OPERATIONS[sign](left, right)

    return _values(chain, write)


def _values(chain: Chain, write: Callable[[str, int, int], int]) -> list[int]:
    values = [chain.digits[0]]
    for sign, digit in zip(chain.operators, chain.digits[1:]):
        values.append(write(sign, values[-1], digit))
    return values[1:]


def steps(chain: Chain, values: Sequence[int], *, done: int | None = None) -> str:
    """``7 + 8 = 5 - 3 = 2``: the first ``done`` operations with what they give, all by default."""
    words = [str(chain.digits[0])]
    for place in range(len(chain.operators) if done is None else done):
        words += [chain.operators[place], str(chain.digits[place + 1]), "=", str(values[place])]
    return " ".join(words)


def chain_phases(recipe: Recipe, uniform: Uniform, strong: Examples, mixed: Examples) -> Phases:
    """Phase 1 has examples of the strong operations, all at once or one after the other; phase 2
    of all operations. The chains of a batch have one length, so that little is padded."""

    def strong_batch(operators: str) -> list[Example]:
        length = draw_length(uniform)
        return strong([draw_strong(operators, length, uniform) for _ in range(recipe.batch)])

    def mixed_batch() -> list[Example]:
        length = draw_length(uniform)
        return mixed([draw_any(length, uniform) for _ in range(recipe.batch)])

    counts = range(1 if recipe.gradual else len(recipe.strong), len(recipe.strong) + 1)
    stages = [partial(strong_batch, recipe.strong[:count]) for count in counts]
    return Phases("strong operations", stages, "all operations", mixed_batch)
