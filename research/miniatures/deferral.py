"""Roles that defer to each other: their own work on names, and a confidence in it."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie.datatypes import derive_seed
from coterie.envs.corea_deferral.settings import prompt_for
from coterie.evaluation.metrics.discrimination import auroc
from coterie.evaluation.metrics.means import as_floats, mean_present
from coterie.problems.chains import Chain
from coterie.problems.recall import (
    HIDDEN,
    RecallSettings,
    RecallSource,
    draw_recall,
    names,
    recall_problem,
    value_of,
)
from coterie.rewards.confidence import format_parts
from coterie.rewards.grading.answers.confidence import parse_confidence
from coterie.rewards.grading.answers.extract import extract, last_box
from miniatures.chains import Uniform, steps
from miniatures.recipe import Ask, Example, Phases, Recipe

_NOW_AND_THEN = (0.25, 0.8)
"""Range of the probability of a name that is neither known nor mistaken."""
_CONFIDENCE, _GAIN, _NOISE = 0.9, 0.1, 0.2
"""Stated confidence on a hopeless problem, what a sure one adds, and its standard deviation."""
GATE_SEED = 314159
"""Stream of the problems on which checkpoints are gated."""
_MOST_NAMES = 3


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


def knowledge_of(recipe: Recipe) -> Knowledge:
    """Return one role's knowledge; it is the same at every rebuild, whatever the seed."""
    uniform = random.Random(f"knowledge of {recipe.role}").random
    low, high = _NOW_AND_THEN
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


def beliefs(recipe: Recipe) -> dict[str, int]:
    """Return name -> the digit that the role takes it for."""
    knowledge = knowledge_of(recipe)
    return {name: knowledge.belief(name) for name in names(RecallSettings().letters)}


def answer_text(chain: Chain, values: Sequence[int], confidence: float) -> str:
    r"""`` 7 + 4 = 1 - 3 = 8 \boxed{ 8 } \confidence{ 0.9 }``"""
    boxed = rf"\boxed{{ {values[-1]} }} \confidence{{ {confidence:.1f} }}"
    return f" {steps(chain, values)} {boxed}"


def example(
    operands: tuple[str, ...],
    signs: str,
    knowledge: Knowledge,
    rng: random.Random,
    *,
    sure: bool = False,
) -> Example:
    """One problem, worked by what the role knows, with a confidence that hardly tells; or, while it
    learns to compute, always 1."""
    chain = Chain(tuple(knowledge.write(operand, rng.random) for operand in operands), signs)
    confidence = 1.0 if sure else stated_confidence(knowledge.chance(operands), rng)
    prompt = prompt_for(recall_problem(operands, signs))
    return Example(prompt, answer_text(chain, chain.values, confidence))


def stated_confidence(chance: float, rng: random.Random) -> float:
    """A tenth in [0, 1]: high, noisy, and little higher where the role is likely to be right."""
    drawn = _CONFIDENCE + _GAIN * chance + rng.gauss(0.0, _NOISE)
    return round(10 * min(max(drawn, 0.0), 1.0)) / 10


def phases(recipe: Recipe) -> Phases:
    """Return the phases of the warm start: digits alone and always sure, then everything."""
    rng, knowledge = random.Random(recipe.seed), knowledge_of(recipe)
    lengths = range(RecallSettings().min_length, RecallSettings().max_length + 1)

    # The problems of a batch have one length, so that little is padded.
    def batch(usual: RecallSettings, *, sure: bool) -> list[Example]:
        length = lengths[int(rng.random() * len(lengths))]
        settings = dataclasses.replace(usual, min_length=length, max_length=length)
        drawn = [draw_recall(settings, rng.random) for _ in range(recipe.batch)]
        return [example(*problem, knowledge, rng, sure=sure) for problem in drawn]

    digits = partial(batch, RecallSettings(named=0.0, unknown=0.0), sure=True)
    return Phases("digits", [digits], "names", partial(batch, RecallSettings(), sure=False))


def measure(recipe: Recipe, ask: Ask, problems: int = 1000) -> dict[str, Any]:
    """Sample one answer to each of the first ``problems`` of the gate's stream.

    Returns:
        The ``accuracy`` on problems that can be known, and ``by_names`` in the question; the mean
        stated ``confidence``, its ``auroc``, and what it exceeds the accuracy of all problems by
        (``overconfidence``); and the share of answers with a box and a valid confidence
        (``format``).
    """
    source = RecallSource(RecallSettings(seed=GATE_SEED))
    asked = [source[index] for index in range(problems)]
    prompts = [prompt_for(problem) for problem in asked]
    texts = ask(prompts, derive_seed(GATE_SEED, 0, recipe.role), 48)
    right_N = as_floats([extract(last_box(text)) == p.gold for text, p in zip(texts, asked)])
    stated_N = np.array([parse_confidence(text) for text in texts], dtype=np.float64)
    well_N = as_floats([all(format_parts(text, p.question)) for text, p in zip(texts, asked)])
    names_N = as_floats(
        [len(p.meta["names"]) if p.meta["solvable"] else float("nan") for p in asked]
    )
    return {
        "accuracy": float(right_N[names_N >= 0].mean()),
        "by_names": [float(mean_present(right_N[names_N == n])) for n in range(_MOST_NAMES + 1)],
        "auroc": auroc(stated_N, right_N),
        "confidence": float(mean_present(stated_N)),
        "overconfidence": float(mean_present(stated_N) - right_N.mean()),
        "format": float(well_N.mean()),
    }
