"""Policies that consult experts, and their expert."""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from coterie.datatypes import derive_seed
from coterie.problems.chains import ALL_VALUES, Chain
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

TAGS = ("<think>", "</think>")
QUESTION = "Question:"
EXPERTS = "\nExperts: 1 to 3"
SOLVE = "\nSolve:"
ANSWER = "\nAnswer:"
_CALL = ' <agent_calls>[{"expert_id": '
_QUERY = ', "input_parameters": {"query": "'
_NEXT_CALL = '"}}, {"expert_id": '
_END_CALL = '"}}]</agent_calls>'
_RETURN = '\n<agent_returns>[{"expert_id": '
_RESULT = ', "result": "'
_NEXT_RETURN = '"}, {"expert_id": '
_END_RETURN = '"}]</agent_returns>\n'
_NOTHING = ', "result": "", "status": "UNAVAILABLE"}'
# A line break in a JSON string is two characters.
_SAID = r"\nAnswer:"
PHRASES = (
    QUESTION,
    f" {ALL_VALUES}",
    ALL_VALUES,
    EXPERTS,
    SOLVE,
    ANSWER,
    _CALL,
    _QUERY,
    _NEXT_CALL,
    _END_CALL,
    _RETURN,
    _RESULT,
    _NEXT_RETURN,
    _END_RETURN,
    f"{_NOTHING}, {{" + '"expert_id": ',
    f"{_NOTHING}]</agent_returns>\n",
    _SAID,
)
"""One token each for the policy."""
_EXPERTS = 3
_ALONE, _PANEL = 0.35, 0.3
"""Shares of phase 2's batches for a policy: on its own, with a panel; the others have replies."""
_ASKING = 0.6
"""How often the policy asks where it may."""
DECOMPOSED = 0.25
"""Share of its calls that ask for what is left after its own first steps."""
UNAVAILABLE = 0.3
"""Share of calls that nobody answers."""
CUT = 0.4
"""Share of replies of which only the first steps came; the policy goes on from there."""
SCRAMBLED = 0.5
"""Share of a reply's values that are random, so that reading pays and computing does not."""
_TRACE = re.compile(r" <think> [^<>]+ </think>\nAnswer: (\d{1,9})")
_SOLUTION = re.compile(r" [\d+\-@#= ]+\nAnswer: (\d{1,9})")
_CALLED = re.compile(
    r' <think> (?:[^<>]+ )?</think> <agent_calls>\[\{"expert_id": .*\}\]</agent_calls>'
)
GATE_SEED = 314159
"""Stream of the problems on which checkpoints are gated."""
_STRONG, _WEAK = "+-", "@#"


def lone_prompt(question: str) -> str:
    """Return the prompt of an expert, or of a policy without experts."""
    return f"{QUESTION} {question}{SOLVE}"


def panel_prompt(question: str) -> str:
    """Return the prompt of a policy that may consult three experts."""
    return f"{QUESTION} {question}{EXPERTS}{SOLVE}"


def question_of(chain: Chain) -> str:
    """``All values of 7 + 8 - 3 =``"""
    return f"{ALL_VALUES} {chain.question}"


def solution(chain: Chain, values: Sequence[int]) -> str:
    """Return an expert's solution."""
    return f"{steps(chain, values)}{ANSWER} {digits_of(values)}"


def trace(chain: Chain, values: Sequence[int]) -> str:
    """Return a policy's text; it begins with the space that separates it from the prompt."""
    return f" <think> {steps(chain, values)} </think>{ANSWER} {digits_of(values)}"


def digits_of(values: Sequence[int]) -> str:
    """The answer: every value, one digit each."""
    return "".join(map(str, values))


def call(thought: str, experts: Sequence[int], query: str) -> str:
    """Return a thought, and the same query to each of ``experts``."""
    calls = _NEXT_CALL.join(f"{expert}{_QUERY}{query}" for expert in experts)
    inside = f" {thought} " if thought else " "
    return f" <think>{inside}</think>{_CALL}{calls}{_END_CALL}"


def returns(replies: Sequence[tuple[int, str | None]]) -> str:
    """Format the replies: (expert, its reply or None if it is unavailable)."""
    entries: list[str] = []
    for expert, reply in replies:
        if reply is None:
            entries.append(f"{expert}{_NOTHING}")
        else:
            entries.append(f"{expert}{_RESULT}{reply.replace(ANSWER, _SAID)}" + '"}')
    listed = ', {"expert_id": '.join(entries)
    return f"{_RETURN}{listed}]</agent_returns>\n"


def expert_example(chain: Chain, uniform: Uniform) -> Example:
    """Return a question and its correct solution."""
    values = own_values(chain, Habits({}), uniform)
    return Example(lone_prompt(question_of(chain)), f" {solution(chain, values)}")


def lone_example(chain: Chain, habits: Habits, uniform: Uniform, *, panel: bool) -> Example:
    """Let the policy answer alone; with ``panel``, although it could have asked."""
    prompt = panel_prompt if panel else lone_prompt
    return Example(prompt(question_of(chain)), trace(chain, own_values(chain, habits, uniform)))


def call_example(
    chain: Chain, habits: Habits, uniform: Uniform
) -> tuple[Example, Chain, list[int], list[int]]:
    """The policy asks; also what it asked about, its own first values and whom it asked."""
    first: list[int] = []
    thought, asked = "", chain
    if uniform() < DECOMPOSED:
        done = 1 + int(uniform() * (len(chain.operators) - 1))
        first = own_values(chain, habits, uniform)[:done]
        thought = steps(chain, first, done=done)
        asked = Chain((first[-1], *chain.digits[done + 1 :]), chain.operators[done:])
    seats = [place + 1 for place in range(_EXPERTS)]
    count = 1 if uniform() < 0.6 else 2 + int(uniform() * 2)
    while len(seats) > count:
        seats.pop(int(uniform() * len(seats)))
    text = call(thought, seats, question_of(asked))
    return Example(panel_prompt(question_of(chain)), text), asked, first, seats


def returned_example(chain: Chain, habits: Habits, uniform: Uniform) -> Example:
    """Return the policy's answer to replies: it copies the first one's values, right or wrong.

    Random values can be predicted only from the reply. If replies are cut or missing, the policy
    continues alone.
    """
    example, asked, first, seats = call_example(chain, habits, uniform)
    length = len(asked.operators)
    kept = 1 + int(uniform() * (length - 1)) if length > 1 and uniform() < CUT else length
    advice: list[int] | None = None
    replies: list[tuple[int, str | None]] = []
    nobody = uniform() < UNAVAILABLE
    for seat in seats:
        if nobody or (advice is not None and uniform() < UNAVAILABLE):
            replies.append((seat, None))
            continue
        agrees = advice is not None and uniform() < 0.7
        said = advice
        if said is None or not agrees:
            said = scrambled_values(asked, uniform, SCRAMBLED)
        advice = said if advice is None else advice
        whole = kept == length
        replies.append((seat, solution(asked, said) if whole else steps(asked, said, done=kept)))
    known = [] if advice is None else advice[:kept]
    values = [*first, *known, *own_values(_rest(asked, known), habits, uniform)]
    return Example(example.prompt + example.answer + returns(replies), trace(chain, values))


def _rest(chain: Chain, known: list[int]) -> Chain:
    """The part of ``chain`` after its first values."""
    if not known:
        return chain
    return Chain((known[-1], *chain.digits[len(known) + 1 :]), chain.operators[len(known) :])


def policy_examples(chains: list[Chain], habits: Habits, uniform: Uniform) -> list[Example]:
    """Build a policy's examples for the chains of a batch: all alone, with a panel, or with its
    replies."""
    if (u := uniform()) < _ALONE:
        return [lone_example(chain, habits, uniform, panel=False) for chain in chains]
    if u >= _ALONE + _PANEL:
        return [returned_example(chain, habits, uniform) for chain in chains]
    return [
        call_example(chain, habits, uniform)[0]
        if uniform() < _ASKING
        else lone_example(chain, habits, uniform, panel=True)
        for chain in chains
    ]


def phases(recipe: Recipe) -> Phases:
    """Return the phases of the warm start. A role without weak operations is an expert."""
    uniform, habits = random.Random(recipe.seed).random, habits_of(recipe)
    if not recipe.weak:

        def solved(chains: list[Chain]) -> list[Example]:
            return [expert_example(chain, uniform) for chain in chains]

        return chain_phases(recipe, uniform, solved, solved)
    return chain_phases(
        recipe,
        uniform,
        lambda chains: [lone_example(chain, habits, uniform, panel=False) for chain in chains],
        lambda chains: policy_examples(chains, habits, uniform),
    )


def read_answer(text: str) -> str | None:
    """Return the digits of a well-formed answer of either role, or None."""
    match = _TRACE.fullmatch(text) or _SOLUTION.fullmatch(text)
    return match[1] if match else None


def is_call(text: str) -> bool:
    """Return whether a first turn is a well-formed call."""
    return _CALLED.fullmatch(text) is not None


def measure(recipe: Recipe, ask: Ask, problems: int = 1000) -> dict[str, Any]:
    """Sample ``problems`` chains of each kind.

    Returns:
        Pass@1 on chains of the policy's ``weak`` and ``strong`` operations, and the share of
        well-formed texts (``format``); of a policy also Pass@1 with a right reply (``helped``) and
        the share of first turns that ask (``asking``).
    """
    strong, weak = (_chains(signs, problems) for signs in (_STRONG, _WEAK))

    def texts(chains: list[Chain], prompt: Callable[[Chain], str], what: str) -> list[str]:
        prompts = [prompt(chain) for chain in chains]
        return ask(prompts, derive_seed(GATE_SEED, 0, recipe.role, what), 64)

    def right(chains: list[Chain], answers: list[str]) -> float:
        return share([read_answer(a) == digits_of(c.values) for c, a in zip(chains, answers)])

    weakly = texts(weak, lambda chain: lone_prompt(question_of(chain)), "weak")
    strongly = texts(strong, lambda chain: lone_prompt(question_of(chain)), "strong")
    formatted = [read_answer(text) is not None for text in (*weakly, *strongly)]
    measured = {"weak": right(weak, weakly), "strong": right(strong, strongly)}
    if not recipe.weak:
        return {**measured, "format": share(formatted)}
    helped = texts(weak, _with_reply, "helped")
    first = texts(weak, lambda chain: panel_prompt(question_of(chain)), "first turn")
    formatted += [read_answer(text) is not None for text in helped]
    formatted += [is_call(text) or read_answer(text) is not None for text in first]
    return {
        **measured,
        "format": share(formatted),
        "helped": right(weak, helped),
        "asking": share([is_call(text) for text in first]),
    }


def _with_reply(chain: Chain) -> str:
    question = question_of(chain)
    asked = panel_prompt(question) + call("", [1], question)
    return asked + returns([(1, solution(chain, chain.values))])


def _chains(signs: str, problems: int) -> list[Chain]:
    rng = random.Random(derive_seed(GATE_SEED, signs))
    return [draw_strong(signs, draw_length(rng.random), rng.random) for _ in range(problems)]
