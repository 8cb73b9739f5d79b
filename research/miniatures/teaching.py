"""Roles that teach each other: their own imperfect work, cold and hinted."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from coterie.datatypes import derive_seed
from coterie.problems.chains import Chain, ChainSettings, ChainSource, Family, draw_chain
from miniatures.chains import (
    Habits,
    Uniform,
    chain_phases,
    draw_length,
    draw_strong,
    habits_of,
    own_values,
    scrambled_values,
    steps,
)
from miniatures.gate import share
from miniatures.recipe import Ask, Example, Phases, Recipe

TAGS = (
    '<strategy id="1">',
    "</strategy>",
    "<result>",
    "</result>",
    "<final_answer>",
    "</final_answer>",
)
QUESTION = "Question:"
SOLVE = "\nLet's solve this step by step:"
HINT = "\nHint:\n"
_HINTED = 0.4
"""Share of phase 2's batches that show a hint."""
_SCRAMBLED = 0.6
"""Share of a hint's values that are random, so that reading pays and computing does not."""
_FORMAT = re.compile(
    r' <strategy id="1"> [^<>]+ <result> (\d) </result> </strategy>'
    r" <final_answer> (\d) </final_answer>"
)
GATE_SEED = 271828
"""Stream of the problems on which checkpoints are gated."""


def prompt(question: str, hint: str = "") -> str:
    """Return a model's prompt; cold without ``hint``."""
    shown = f"{HINT}{hint}" if hint else ""
    return f"{QUESTION} {question}{shown}{SOLVE}"


def trace(work: str, answer: int) -> str:
    """Return a model's answer; it begins with the space that separates it from the prompt."""
    return (
        f' <strategy id="1"> {work} <result> {answer} </result> </strategy>'
        f" <final_answer> {answer} </final_answer>"
    )


def work(chain: Chain, values: Sequence[int]) -> str:
    """``7 + 8 = 5 - 3 =``: the body of a trace. The last value is left out, so this is also what
    is left of a trace as a hint."""
    return steps(chain, values).rpartition(" ")[0]


def cold_example(chain: Chain, habits: Habits, uniform: Uniform) -> Example:
    """Each step by habit, each value passed on as it was written, right or wrong."""
    values = own_values(chain, habits, uniform)
    return Example(prompt(chain.question), trace(work(chain, values), values[-1]))


def hinted_example(chain: Chain, habits: Habits, uniform: Uniform, *, scrambled: float) -> Example:
    """Copy the hint's values, right or wrong; only the last step is the role's own.

    A share ``scrambled`` of the values is random: they can be predicted only from the hint.
    """
    values = scrambled_values(Chain(chain.digits[:-1], chain.operators[:-1]), uniform, scrambled)
    answer = habits.write(chain.operators[-1], values[-1], chain.digits[-1], uniform)
    shown = work(chain, [*values, answer])
    return Example(prompt(chain.question, shown), trace(shown, answer))


def teaching_examples(chains: list[Chain], habits: Habits, uniform: Uniform) -> list[Example]:
    """Build the examples of a batch of phase 2: all cold, or all behind hints."""
    if uniform() >= _HINTED:
        return [cold_example(chain, habits, uniform) for chain in chains]
    return [hinted_example(chain, habits, uniform, scrambled=_SCRAMBLED) for chain in chains]


def phases(recipe: Recipe) -> Phases:
    """Return the phases of the warm start."""
    uniform, habits = random.Random(recipe.seed).random, habits_of(recipe)
    return chain_phases(
        recipe,
        uniform,
        lambda chains: [cold_example(chain, habits, uniform) for chain in chains],
        lambda chains: teaching_examples(chains, habits, uniform),
    )


def read_answer(text: str) -> str | None:
    """Return the digit of a well-formed answer, or None."""
    match = _FORMAT.fullmatch(text)
    return match[2] if match and match[1] == match[2] else None


def measure(recipe: Recipe, ask: Ask, problems: int = 1000) -> dict[str, Any]:
    """Sample ``problems`` chains cold and as many strong ones, then the failed ones twice.

    Returns:
        Pass@1 on the mix (``cold``), ``by_family`` of operations and on ``strong`` ones; on failed
        problems that of a second cold attempt (``retry``) and behind a right peer's hint
        (``hinted``); and the share of well-formed answers (``format``).
    """
    answers: list[str | None] = []

    def right(chains: Sequence[Chain], what: str) -> list[bool]:
        hints = [work(chain, chain.values) if what == "hinted" else "" for chain in chains]
        prompts = [prompt(chain.question, hint) for chain, hint in zip(chains, hints)]
        texts = ask(prompts, derive_seed(GATE_SEED, 0, recipe.role, what), 40)
        read = [read_answer(text) for text in texts]
        answers.extend(read)
        return [answer == str(chain.values[-1]) for chain, answer in zip(chains, read)]

    drawn = gate_chains(problems)
    chains = [chain for _, chain in drawn]
    cold = right(chains, "cold")
    families = defaultdict[str, list[bool]](list)
    for (family, _), solved in zip(drawn, cold):
        families[family].append(solved)
    rng = random.Random(derive_seed(GATE_SEED, "strong", recipe.role))
    strong = [
        draw_strong(recipe.strong, draw_length(rng.random), rng.random) for _ in range(problems)
    ]
    failed = [chain for chain, solved in zip(chains, cold) if not solved]
    return {
        "cold": share(cold),
        "by_family": {family: share(families[family]) for family in sorted(families)},
        "strong": share(right(strong, "strong")),
        "retry": share(right(failed, "retry")),
        "hinted": share(right(failed, "hinted")),
        "format": share([answer is not None for answer in answers]),
    }


def gate_chains(problems: int, seed: int = GATE_SEED) -> list[tuple[Family, Chain]]:
    """Return the first ``problems`` chains of the gate's stream, with their families."""
    settings = ChainSettings(seed=seed)
    source = ChainSource(settings)
    return [draw_chain(settings, source.stream(index).random) for index in range(problems)]
