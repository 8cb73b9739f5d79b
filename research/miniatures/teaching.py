"""The warm start of the roles that teach each other, and the gate that it must pass."""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coterie.datatypes import derive_seed
from coterie.problems.chains import Chain, ChainSettings, ChainSource
from miniatures.fitting import Report, train
from miniatures.gate import missed, sample, share
from miniatures.recipe import Example
from miniatures.recipes import ConsultingRecipe, TeachingRecipe
from miniatures.teaching_corpus import (
    Uniform,
    cold_example,
    draw_any,
    draw_length,
    draw_strong,
    habits_of,
    hinted_example,
    prompt,
    work,
)

_FORMAT = re.compile(
    r' <strategy id="1"> [^<>]+ <result> (\d) </result> </strategy>'
    r" <final_answer> (\d) </final_answer>"
)
Examples = Callable[[list[Chain]], list[Example]]
"""What a role reads of the chains of a batch."""
GATE_SEED = 271828
"""Stream of the problems on which checkpoints are gated."""


def warm_start(
    recipe: TeachingRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: Report,
) -> None:
    """Train ``model`` in place; raises ``NoConvergence`` where phase 1 gets stuck."""
    rng = random.Random(recipe.seed)
    habits = habits_of(recipe.role, recipe.weak, recipe.wrong)
    uniform = rng.random

    def cold(chains: list[Chain]) -> list[Example]:
        return [cold_example(chain, habits, uniform) for chain in chains]

    def mixed(chains: list[Chain]) -> list[Example]:
        if uniform() >= recipe.hinted:
            return cold(chains)
        share = recipe.scrambled
        return [hinted_example(chain, habits, uniform, scrambled=share) for chain in chains]

    begun = 1 if recipe.gradual else len(recipe.strong)
    train_on_chains(recipe, model, tokenizer, report, uniform, cold, mixed, begun)


def train_on_chains(
    recipe: TeachingRecipe | ConsultingRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: Report,
    uniform: Uniform,
    strong: Examples,
    mixed: Examples,
    begun: int,
) -> None:
    """Phase 1: examples of the first ``begun`` strong operations, then of one more at a time;
    phase 2: of all operations. The chains of a batch have one length, so that little is padded."""

    def strong_batch(operators: str) -> list[Example]:
        length = draw_length(uniform)
        return strong([draw_strong(operators, length, uniform) for _ in range(recipe.batch)])

    def mixed_batch() -> list[Example]:
        length = draw_length(uniform)
        return mixed([draw_any(length, uniform) for _ in range(recipe.batch)])

    counts = range(begun, len(recipe.strong) + 1)
    stages = [partial(strong_batch, recipe.strong[:count]) for count in counts]
    first, second = ("strong operations", stages), ("all operations", mixed_batch)
    train(model, tokenizer, recipe, report, first, second)


@dataclass(frozen=True)
class Gate:
    """Bounds on what was measured: room to learn, something to teach, and hints that are read."""

    cold_min: float = 0.35
    cold_max: float = 0.5
    strong_min: float = 0.9
    """Cold accuracy on chains of the role's strong operations."""
    lift_min: float = 0.15
    """Hinted accuracy on problems failed cold, less the accuracy of a second cold attempt."""
    format_min: float = 0.99


_FIRM = Gate(cold_min=0.2, cold_max=0.4)
GATES = {"dora": Gate(cold_min=0.5, cold_max=0.7), "gina": _FIRM, "hugo": _FIRM}
"""Bounds of a role that has its own."""


@dataclass(frozen=True)
class Measured:
    """Shares, sampled at temperature 1 with no filter."""

    cold: float
    """Pass@1 on the mix."""
    by_family: Mapping[str, float]
    strong: float
    retry: float
    """Second cold attempt on problems that the first one failed."""
    hinted: float
    """With a right peer's hint, on the same problems."""
    format: float
    """Well-formed answers among all samples."""


def complaints(measured: Measured, gate: Gate) -> list[str]:
    """Return one sentence per missed bound; an empty list passes the gate."""
    m = measured
    return missed(
        ("cold", m.cold, gate.cold_min, gate.cold_max),
        ("strong", m.strong, gate.strong_min, 1.0),
        ("lift by hints", m.hinted - m.retry, gate.lift_min, 1.0),
        ("format", m.format, gate.format_min, 1.0),
    )


def read_answer(text: str) -> str | None:
    """Return the digit of a well-formed answer, or None."""
    match = _FORMAT.fullmatch(text)
    return match[2] if match and match[1] == match[2] else None


def measure(
    recipe: TeachingRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    *,
    problems: int = 1000,
    seed: int = 0,
) -> Measured:
    """Sample ``problems`` chains cold and as many strong ones, then the failed ones twice."""
    chains = gate_chains(problems)
    cold = _answer(recipe, model, tokenizer, chains, seed, "cold")
    families = defaultdict[str, list[bool]](list)
    for chain, answer in zip(chains, cold):
        families[family_of(chain)].append(_right(chain, answer))
    rng = random.Random(derive_seed(GATE_SEED, "strong", recipe.role))
    strong = [
        draw_strong(recipe.strong, draw_length(rng.random), rng.random) for _ in range(problems)
    ]
    strong_answers = _answer(recipe, model, tokenizer, strong, seed, "strong")
    failed = [chain for chain, answer in zip(chains, cold) if not _right(chain, answer)]
    retry = _answer(recipe, model, tokenizer, failed, seed, "retry")
    hinted = _answer(recipe, model, tokenizer, failed, seed, "hinted")
    answers = [*cold, *strong_answers, *retry, *hinted]
    return Measured(
        cold=share([_right(chain, answer) for chain, answer in zip(chains, cold)]),
        by_family={family: share(families[family]) for family in sorted(families)},
        strong=share([_right(chain, answer) for chain, answer in zip(strong, strong_answers)]),
        retry=share([_right(chain, answer) for chain, answer in zip(failed, retry)]),
        hinted=share([_right(chain, answer) for chain, answer in zip(failed, hinted)]),
        format=share([answer is not None for answer in answers]),
    )


def gate_chains(problems: int) -> list[Chain]:
    """Return the first ``problems`` chains of the gate's stream."""
    source = ChainSource(ChainSettings(seed=GATE_SEED))
    return [parse_chain(source[index].question) for index in range(problems)]


def parse_chain(question: str) -> Chain:
    """Parse ``7 + 8 - 3 =`` into its digits and signs."""
    words = question.split()
    return Chain(tuple(int(word) for word in words[0:-1:2]), "".join(words[1:-1:2]))


def family_of(chain: Chain) -> str:
    """Return P, T or X, by the signs that occur."""
    signs = set(chain.operators)
    if signs <= set("+-"):
        return "P"
    return "T" if signs <= set("@#") else "X"


def _answer(
    recipe: TeachingRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    chains: list[Chain],
    seed: int,
    what: str,
) -> list[str | None]:
    hints = [work(chain, chain.values) if what == "hinted" else "" for chain in chains]
    prompts = [prompt(chain.question, hint) for chain, hint in zip(chains, hints)]
    stream = derive_seed(GATE_SEED, seed, recipe.role, what)
    return [read_answer(text) for text in sample(model, tokenizer, prompts, seed=stream)]


def _right(chain: Chain, answer: str | None) -> bool:
    return answer == str(chain.values[-1])


def gate_of(recipe: TeachingRecipe) -> Gate:
    """Return the bounds for one role."""
    return GATES.get(recipe.role, Gate())
