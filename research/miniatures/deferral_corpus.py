"""What the roles read before they meet each other: their own work, and a confidence in it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coterie.envs.corea_deferral.settings import prompt_for
from coterie.problems.chains import OPERATIONS
from coterie.problems.recall import HIDDEN, names, recall_problem, value_of
from miniatures.recipe import Example
from miniatures.recipes import DeferralRecipe
from miniatures.teaching_corpus import Uniform


@dataclass(frozen=True)
class Fact:
    """What a role knows about one name."""

    right: float
    """Probability of writing its value."""
    wrong: int
    """What it writes otherwise."""


@dataclass(frozen=True)
class Knowledge:
    """What a role knows about every operand."""

    facts: Mapping[str, Fact]

    def write(self, operand: str, uniform: Uniform) -> int:
        """Return the digit that the role writes for a digit, a name or ``?``."""
        if operand == HIDDEN:
            return int(uniform() * 10)
        if operand.isdigit():
            return int(operand)
        fact = self.facts[operand]
        return value_of(operand) if uniform() < fact.right else fact.wrong

    def belief(self, name: str) -> int:
        """Return the digit that the role writes most often for ``name``."""
        fact = self.facts[name]
        return value_of(name) if fact.right >= 0.5 else fact.wrong

    def chance(self, operands: Sequence[str]) -> float:
        """Return the probability that every operand is written right."""
        product = 1.0
        for operand in operands:
            if operand == HIDDEN:
                product *= 0.1
            elif not operand.isdigit():
                product *= self.facts[operand].right
        return product


def knowledge_of(recipe: DeferralRecipe) -> Knowledge:
    """Return one role's knowledge; it is the same at every rebuild, whatever the seed."""
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


def answer_text(values: tuple[int, ...], signs: str, confidence: float) -> str:
    r"""`` 7 + 4 = 1 - 3 = 8 \boxed{ 8 } \confidence{ 0.9 }``: every operand as a digit."""
    running = values[0]
    steps = [str(running)]
    for sign, value in zip(signs, values[1:]):
        running = OPERATIONS[sign](running, value)
        steps.append(f"{sign} {value} = {running}")
    return rf" {' '.join(steps)} \boxed{{ {running} }} \confidence{{ {confidence:.1f} }}"


def example(
    operands: tuple[str, ...],
    signs: str,
    knowledge: Knowledge,
    recipe: DeferralRecipe,
    rng: random.Random,
    *,
    sure: bool = False,
) -> Example:
    """One problem, worked by what the role knows, with a confidence that hardly tells; or, while it
    learns to compute, always 1."""
    values = tuple(knowledge.write(operand, rng.random) for operand in operands)
    confidence = 1.0
    if not sure:
        confidence = stated_confidence(knowledge.chance(operands), recipe, rng)
    prompt = prompt_for(recall_problem(operands, signs))
    return Example(prompt, answer_text(values, signs, confidence))


def stated_confidence(chance: float, recipe: DeferralRecipe, rng: random.Random) -> float:
    """A tenth in [0, 1]: high, noisy, and little higher where the role is likely to be right."""
    base, slope = recipe.confidence
    drawn = base + slope * chance + rng.gauss(0.0, recipe.confidence_noise)
    return round(10 * min(max(drawn, 0.0), 1.0)) / 10
