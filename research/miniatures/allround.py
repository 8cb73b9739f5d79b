"""The warm start of roles that can begin in all three systems, and the gate that it must pass: they
teach, state a confidence, and consult, on the same chains and with the same habits."""

import random
import re
from dataclasses import dataclass

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coterie.datatypes import Problem, derive_seed
from coterie.envs.corea_deferral.settings import prompt_for
from coterie.problems.chains import ALL_VALUES, Chain
from coterie.rewards.grading.answers.confidence import parse_confidence
from coterie.rewards.grading.answers.extract import extract, last_box
from miniatures import teaching
from miniatures.consulting import is_call, policy_examples
from miniatures.consulting_corpus import call, lone_prompt, panel_prompt, returns, solution
from miniatures.deferral_corpus import stated_confidence
from miniatures.fitting import Report
from miniatures.gate import missed, sample, share
from miniatures.recipe import Example
from miniatures.recipes import AllRoundRecipe
from miniatures.teaching_corpus import (
    Habits,
    cold_example,
    habits_of,
    hinted_example,
    own_values,
    work,
)

_TEACHES, _DEFERS = 0.4, 0.2
"""Shares of phase 2's batches; the others consult."""
_TRACE = re.compile(r" <think> [^<>]+ </think>\nAnswer: (\d)")
_VALUES = re.compile(r"(Answer: )\d*(\d)")


def warm_start(
    recipe: AllRoundRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: Report,
) -> None:
    """Train ``model`` in place; raises ``NoConvergence`` where phase 1 gets stuck."""
    rng = random.Random(recipe.seed)
    uniform = rng.random
    habits = habits_of(recipe.role, recipe.weak, recipe.wrong)

    def cold(chains: list[Chain]) -> list[Example]:
        return [cold_example(chain, habits, uniform) for chain in chains]

    def mixed(chains: list[Chain]) -> list[Example]:
        if (u := uniform()) < _DEFERS:
            return [deferral_example(chain, habits, recipe, rng) for chain in chains]
        if u >= _DEFERS + _TEACHES:
            asked = policy_examples(recipe.consulting, habits, uniform, chains)
            return [last_value(example) for example in asked]
        if uniform() >= recipe.hinted:
            return cold(chains)
        scrambled = recipe.scrambled
        return [hinted_example(chain, habits, uniform, scrambled=scrambled) for chain in chains]

    begun = 1 if recipe.gradual else len(recipe.strong)
    teaching.train_on_chains(recipe, model, tokenizer, report, uniform, cold, mixed, begun)


def deferral_example(
    chain: Chain, habits: Habits, recipe: AllRoundRecipe, rng: random.Random
) -> Example:
    """Worked by habit, with a confidence that says little about the chance of being right."""
    chance = 1.0
    for sign, left, right in zip(
        chain.operators, (chain.digits[0], *chain.values), chain.digits[1:]
    ):
        chance *= 1 - habits.wrong.get((sign, left, right), (0, 0.0))[1]
    confidence = stated_confidence(chance, recipe.deferring, rng)
    values = own_values(chain, habits, rng.random)
    shown = f"{work(chain, values)} {values[-1]}"
    text = rf" {shown} \boxed{{ {values[-1]} }} \confidence{{ {confidence:.1f} }}"
    return Example(asked(chain), text)


def last_value(example: Example) -> Example:
    """Ask for the last value instead of all."""
    texts = (
        example.prompt.replace(f"{ALL_VALUES} ", ""),
        example.answer.replace(f"{ALL_VALUES} ", ""),
    )
    return Example(*(_VALUES.sub(r"\1\2", text) for text in texts))


def asked(chain: Chain) -> str:
    """Return the prompt that asks for a confidence."""
    return prompt_for(Problem("", chain.question, gold=str(chain.values[-1])))


@dataclass(frozen=True)
class Gate(teaching.Gate):
    """Bounds of the three forms."""

    cold_max: float = 0.6
    helped_min: float = 0.1
    """Least gain in accuracy from a right reply."""
    asking: tuple[float, float] = (0.4, 0.8)


@dataclass(frozen=True)
class Measured(teaching.Measured):
    """The shares of teaching, and of the other two forms."""

    deferring: float
    """Accuracy under the prompt for a confidence."""
    stated: float
    """Share of these answers with a confidence."""
    alone: float
    """Accuracy under the policy's prompt."""
    helped: float
    """Accuracy with a right reply."""
    asking: float
    """Share of first turns before a panel that ask."""


def measure(
    recipe: AllRoundRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    *,
    problems: int = 500,
    seed: int = 0,
) -> Measured:
    """Sample ``problems`` chains in each form."""
    taught = teaching.measure(recipe, model, tokenizer, problems=problems, seed=seed)
    chains = teaching.gate_chains(problems)

    def texts(prompts: list[str], what: str) -> list[str]:
        stream = derive_seed(teaching.GATE_SEED, seed, recipe.role, what)
        return sample(model, tokenizer, prompts, seed=stream, max_new_tokens=64)

    def right(texts: list[str]) -> float:
        matches = [_TRACE.fullmatch(text) for text in texts]
        return share([m is not None and int(m[1]) == c.values[-1] for m, c in zip(matches, chains)])

    sure = texts([asked(chain) for chain in chains], "deferring")
    first = texts([panel_prompt(chain.question) for chain in chains], "asking")
    return Measured(
        **vars(taught),
        deferring=share([extract(last_box(t)) == str(c.values[-1]) for t, c in zip(sure, chains)]),
        stated=share([parse_confidence(text) is not None for text in sure]),
        alone=right(texts([lone_prompt(chain.question) for chain in chains], "alone")),
        helped=right(texts([_with_reply(chain) for chain in chains], "helped")),
        asking=share([is_call(text) for text in first]),
    )


def _with_reply(chain: Chain) -> str:
    example = Example(
        panel_prompt(chain.question) + call("", [1], chain.question),
        returns([(1, solution(chain, chain.values))]),
    )
    return "".join(vars(last_value(example)).values())


def complaints(measured: Measured, gate: Gate) -> list[str]:
    """Return one sentence per missed bound; an empty list passes the gate."""
    m = measured
    return teaching.complaints(m, gate) + missed(
        ("deferring", m.deferring, gate.cold_min, gate.cold_max),
        ("stated", m.stated, gate.format_min, 1.0),
        ("alone", m.alone, gate.cold_min, gate.cold_max),
        ("helped", m.helped - m.alone, gate.helped_min, 1.0),
        ("asking", m.asking, *gate.asking),
    )


def gate_of(recipe: AllRoundRecipe) -> Gate:
    """Return the bounds, which are the same for both roles."""
    del recipe
    return Gate()
