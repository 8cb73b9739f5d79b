"""The warm start of the policies and of their expert, and the gate that it must pass."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coterie.datatypes import derive_seed
from coterie.problems.chains import Chain
from miniatures.consulting_corpus import (
    call,
    call_example,
    digits_of,
    expert_example,
    lone_example,
    lone_prompt,
    panel_prompt,
    question_of,
    returned_example,
    returns,
    solution,
)
from miniatures.fitting import Report
from miniatures.gate import missed, sample, share
from miniatures.recipe import Example
from miniatures.recipes import ConsultingRecipe
from miniatures.teaching import train_on_chains
from miniatures.teaching_corpus import Habits, Uniform, draw_length, draw_strong, habits_of

# Shares of phase 2's batches for a policy: on its own, with a panel, with replies.
_ALONE, _PANEL = 0.35, 0.3
_TRACE = re.compile(r" <think> [^<>]+ </think>\nAnswer: (\d{1,9})")
_SOLUTION = re.compile(r" [\d+\-@#= ]+\nAnswer: (\d{1,9})")
_CALL = re.compile(
    r' <think> (?:[^<>]+ )?</think> <agent_calls>\[\{"expert_id": .*\}\]</agent_calls>'
)
GATE_SEED = 314159
"""Stream of the problems on which checkpoints are gated."""
_STRONG, _WEAK = "+-", "@#"


def warm_start(
    recipe: ConsultingRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: Report,
) -> None:
    """Train ``model`` in place; raises ``NoConvergence`` where phase 1 gets stuck."""
    uniform = random.Random(recipe.seed).random
    habits = habits_of(recipe.role, recipe.weak, recipe.wrong)

    def strong(chains: list[Chain]) -> list[Example]:
        if not recipe.consults:
            return [expert_example(chain, uniform) for chain in chains]
        return [lone_example(chain, habits, uniform, panel=False) for chain in chains]

    def mixed(chains: list[Chain]) -> list[Example]:
        return policy_examples(recipe, habits, uniform, chains)

    second = mixed if recipe.consults else strong
    train_on_chains(recipe, model, tokenizer, report, uniform, strong, second, 1)


def policy_examples(
    recipe: ConsultingRecipe, habits: Habits, uniform: Uniform, chains: list[Chain]
) -> list[Example]:
    """Build a policy's examples for the chains of a batch: all alone, with a panel, or with its
    replies."""
    if (u := uniform()) < _ALONE:
        return [lone_example(chain, habits, uniform, panel=False) for chain in chains]
    if u >= _ALONE + _PANEL:
        names = ("decomposed", "unavailable", "cut", "scrambled")
        shares = {name: getattr(recipe, name) for name in names}
        return [returned_example(chain, habits, uniform, **shares) for chain in chains]
    return [
        call_example(chain, habits, uniform, decomposed=recipe.decomposed)[0]
        if uniform() < recipe.asking
        else lone_example(chain, habits, uniform, panel=True)
        for chain in chains
    ]


@dataclass(frozen=True)
class PolicyGate:
    """Bounds for a policy: it solves little alone, reads replies, and asks for help."""

    alone_max: float = 0.03
    """Pass@1 on chains of weak operations only, without help."""
    strong_min: float = 0.9
    """Pass@1 on chains of strong operations only."""
    helped_min: float = 0.5
    """Pass@1 on chains of weak operations with a right reply."""
    asking_min: float = 0.4
    asking_max: float = 0.8
    """Share of first turns that ask."""
    format_min: float = 0.97


@dataclass(frozen=True)
class ExpertGate:
    """Bounds for an expert."""

    weak_min: float = 0.85
    """Pass@1 on the chains that the policy cannot solve."""
    format_min: float = 0.97


@dataclass(frozen=True)
class Measured:
    """Shares, sampled at temperature 1 with no filter; None where a role is not asked."""

    weak: float
    """Pass@1 on chains of the policy's weak operations."""
    strong: float
    format: float
    helped: float | None = None
    asking: float | None = None


Gate = PolicyGate | ExpertGate


def complaints(measured: Measured, gate: Gate) -> list[str]:
    """Return one sentence per missed bound; an empty list passes the gate."""
    m = measured
    formatted = ("format", m.format, gate.format_min, 1.0)
    if isinstance(gate, ExpertGate):
        return missed(formatted, ("weak", m.weak, gate.weak_min, 1.0))
    return missed(
        formatted,
        ("alone", m.weak, 0.0, gate.alone_max),
        ("strong", m.strong, gate.strong_min, 1.0),
        ("helped", m.helped or 0.0, gate.helped_min, 1.0),
        ("asking", m.asking or 0.0, gate.asking_min, gate.asking_max),
    )


def read_answer(text: str) -> str | None:
    """Return the digits of a well-formed answer of either role, or None."""
    match = _TRACE.fullmatch(text) or _SOLUTION.fullmatch(text)
    return match[1] if match else None


def is_call(text: str) -> bool:
    """Return whether a first turn is a well-formed call."""
    return _CALL.fullmatch(text) is not None


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
        return share([read_answer(a) == digits_of(c.values) for c, a in zip(chains, answers)])

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


def gate_of(recipe: ConsultingRecipe) -> Gate:
    """Return the bounds for one role."""
    return PolicyGate() if recipe.consults else ExpertGate()
