"""What the roles read before they meet each other: their own work, and a confidence in it."""

import random

from envs.corea_deferral.prompts import prompt_for
from launch.tiny.deferral.knowledge import Knowledge
from launch.tiny.deferral.recipes import DeferralRecipe
from launch.tiny.example import Example
from problems.chains import OPERATIONS
from problems.recall import recall_problem


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
