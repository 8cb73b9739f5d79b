"""Roles that can begin in all three systems: they teach, state a confidence, and consult, on the
same chains and with the same habits."""

import random
import re
from typing import Any

from coterie.datatypes import Problem, derive_seed
from coterie.envs.corea_deferral.settings import prompt_for
from coterie.problems.chains import ALL_VALUES, Chain
from coterie.rewards.grading.answers.confidence import parse_confidence
from coterie.rewards.grading.answers.extract import extract, last_box
from miniatures import teaching
from miniatures.chains import Habits, chain_phases, habits_of, own_values
from miniatures.consulting import (
    call,
    is_call,
    lone_prompt,
    panel_prompt,
    policy_examples,
    returns,
    solution,
)
from miniatures.deferral import answer_text, stated_confidence
from miniatures.gate import share
from miniatures.recipe import Ask, Example, Phases, Recipe

_TEACHES, _DEFERS = 0.4, 0.2
"""Shares of phase 2's batches; the others consult."""
_TRACE = re.compile(r" <think> [^<>]+ </think>\nAnswer: (\d)")
_VALUES = re.compile(r"(Answer: )\d*(\d)")


def phases(recipe: Recipe) -> Phases:
    """Return the phases of the warm start."""
    rng, habits = random.Random(recipe.seed), habits_of(recipe)
    uniform = rng.random

    def cold(chains: list[Chain]) -> list[Example]:
        return [teaching.cold_example(chain, habits, uniform) for chain in chains]

    def mixed(chains: list[Chain]) -> list[Example]:
        if (u := uniform()) < _DEFERS:
            return [deferral_example(chain, habits, rng) for chain in chains]
        if u >= _DEFERS + _TEACHES:
            return [last_value(example) for example in policy_examples(chains, habits, uniform)]
        return teaching.teaching_examples(chains, habits, uniform)

    return chain_phases(recipe, uniform, cold, mixed)


def deferral_example(chain: Chain, habits: Habits, rng: random.Random) -> Example:
    """Worked by habit, with a confidence that says little about the chance of being right."""
    chance = 1.0
    for sign, left, right in zip(
        chain.operators, (chain.digits[0], *chain.values), chain.digits[1:]
    ):
        chance *= 1 - habits.wrong.get((sign, left, right), (0, 0.0))[1]
    confidence = stated_confidence(chance, rng)
    values = own_values(chain, habits, rng.random)
    return Example(_prompt(chain), answer_text(chain, values, confidence))


def last_value(example: Example) -> Example:
    """Ask for the last value instead of all."""
    texts = (text.replace(f"{ALL_VALUES} ", "") for text in (example.prompt, example.answer))
    return Example(*(_VALUES.sub(r"\1\2", text) for text in texts))


def _prompt(chain: Chain) -> str:
    """The prompt that asks for a confidence."""
    return prompt_for(Problem("", chain.question, gold=str(chain.values[-1])))


def measure(recipe: Recipe, ask: Ask, problems: int = 500) -> dict[str, Any]:
    """Sample ``problems`` chains in each form.

    Returns:
        What a teacher's are; accuracy under the prompt for a confidence (``deferring``) and the
        share of answers that state one (``stated``); accuracy under the policy's prompt
        (``alone``) and with a right reply (``helped``); and the share of first turns before a
        panel that ask (``asking``).
    """
    taught = teaching.measure(recipe, ask, problems)
    chains = [chain for _, chain in teaching.gate_chains(problems)]

    def texts(prompts: list[str], what: str) -> list[str]:
        return ask(prompts, derive_seed(teaching.GATE_SEED, 0, recipe.role, what), 64)

    def right(texts: list[str]) -> float:
        matches = [_TRACE.fullmatch(text) for text in texts]
        return share([m is not None and int(m[1]) == c.values[-1] for m, c in zip(matches, chains)])

    sure = texts([_prompt(chain) for chain in chains], "deferring")
    boxed = [extract(last_box(text)) for text in sure]
    first = texts([panel_prompt(chain.question) for chain in chains], "asking")
    return {
        **taught,
        "deferring": share([box == str(chain.values[-1]) for box, chain in zip(boxed, chains)]),
        "stated": share([parse_confidence(text) is not None for text in sure]),
        "alone": right(texts([lone_prompt(chain.question) for chain in chains], "alone")),
        "helped": right(texts([_with_reply(chain) for chain in chains], "helped")),
        "asking": share([is_call(text) for text in first]),
    }


def _with_reply(chain: Chain) -> str:
    asked = panel_prompt(chain.question) + call("", [1], chain.question)
    example = last_value(Example(asked, returns([(1, solution(chain, chain.values))])))
    return example.prompt + example.answer
