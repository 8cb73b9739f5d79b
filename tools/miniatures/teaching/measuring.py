"""Measures a tiny model cold, on its strong side, and with a peer's hint."""

import random
from collections import defaultdict

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from launch.tiny.sampling import sample
from launch.tiny.teaching.corpus import draw_length, draw_strong, work
from launch.tiny.teaching.gate import Measured, read_answer, share
from launch.tiny.teaching.markup import prompt
from launch.tiny.teaching.recipes import TeachingRecipe
from problems.chains import Chain, ChainSettings, ChainSource
from vocabulary import derive_seed

GATE_SEED = 271828
"""Stream of the problems on which checkpoints are gated."""


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
    """The first ``problems`` chains of the gate's own stream."""
    source = ChainSource(ChainSettings(seed=GATE_SEED))
    return [parse_chain(source[index].question) for index in range(problems)]


def parse_chain(question: str) -> Chain:
    """``7 + 8 - 3 =`` back to its digits and signs."""
    words = question.split()
    return Chain(tuple(int(word) for word in words[0:-1:2]), "".join(words[1:-1:2]))


def family_of(chain: Chain) -> str:
    """P, T or X, by the signs that occur."""
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
