"""Measures the policy alone, with a right reply, and how often it asks; the expert's solutions."""

import random
from collections.abc import Callable

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from launch.tiny.consulting.gate import Measured, is_call, read_answer
from launch.tiny.consulting.markup import (
    call,
    joined,
    lone_prompt,
    panel_prompt,
    question_of,
    returns,
    solution,
)
from launch.tiny.consulting.recipes import ConsultingRecipe
from launch.tiny.sampling import sample
from launch.tiny.teaching.corpus import draw_length, draw_strong
from launch.tiny.teaching.gate import share
from problems.chains import Chain
from vocabulary import derive_seed

GATE_SEED = 314159
"""Stream of the problems on which checkpoints are gated."""
_STRONG, _WEAK = "+-", "@#"


def measure(
    recipe: ConsultingRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    *,
    problems: int = 1000,
    seed: int = 0,
) -> Measured:
    """Sample ``problems`` chains of each kind."""
    strong, weak = (_chains(signs, problems) for signs in (_STRONG, _WEAK))

    def texts(chains: list[Chain], prompt: Callable[[Chain], str], what: str) -> list[str]:
        stream = derive_seed(GATE_SEED, seed, recipe.role, what)
        prompts = [prompt(chain) for chain in chains]
        return sample(model, tokenizer, prompts, seed=stream, max_new_tokens=64)

    def right(chains: list[Chain], answers: list[str]) -> float:
        return share([read_answer(a) == joined(c.values) for c, a in zip(chains, answers)])

    weakly = texts(weak, lambda chain: lone_prompt(question_of(chain)), "weak")
    strongly = texts(strong, lambda chain: lone_prompt(question_of(chain)), "strong")
    formatted = [read_answer(text) is not None for text in (*weakly, *strongly)]
    if not recipe.consults:
        return Measured(right(weak, weakly), right(strong, strongly), share(formatted))
    helped = texts(weak, _with_reply, "helped")
    first = texts(weak, lambda chain: panel_prompt(question_of(chain)), "first turn")
    formatted += [read_answer(text) is not None for text in helped]
    formatted += [is_call(text) or read_answer(text) is not None for text in first]
    return Measured(
        weak=right(weak, weakly),
        strong=right(strong, strongly),
        format=share(formatted),
        helped=right(weak, helped),
        asking=share([is_call(text) for text in first]),
    )


def _with_reply(chain: Chain) -> str:
    question = question_of(chain)
    asked = panel_prompt(question) + call("", [1], question)
    return asked + returns([(1, solution(chain, chain.values))])


def _chains(signs: str, problems: int) -> list[Chain]:
    rng = random.Random(derive_seed(GATE_SEED, signs))
    return [draw_strong(signs, draw_length(rng.random), rng.random) for _ in range(problems)]
