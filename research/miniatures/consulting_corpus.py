"""Training texts of the policy and the expert for their warm starts."""

from collections.abc import Sequence

from coterie.problems.chains import ALL_VALUES, Chain
from miniatures.recipe import Example
from miniatures.teaching_corpus import Habits, Uniform, own_values, scrambled_values

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
_NONE = Habits({})


def lone_prompt(question: str) -> str:
    """Return the prompt of an expert, or of a policy without experts."""
    return f"{QUESTION} {question}{SOLVE}"


def panel_prompt(question: str) -> str:
    """Return the prompt of a policy that may consult three experts."""
    return f"{QUESTION} {question}{EXPERTS}{SOLVE}"


def question_of(chain: Chain) -> str:
    """``All values of 7 + 8 - 3 =``"""
    return f"{ALL_VALUES} {chain.question}"


def steps(chain: Chain, values: Sequence[int], *, done: int | None = None) -> str:
    """``7 + 8 = 5 - 3 = 2``: the first ``done`` operations with what they give, all by default."""
    words = [str(chain.digits[0])]
    for place in range(len(chain.operators) if done is None else done):
        words += [chain.operators[place], str(chain.digits[place + 1]), "=", str(values[place])]
    return " ".join(words)


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
    asked = _NEXT_CALL.join(f"{expert}{_QUERY}{query}" for expert in experts)
    inside = f" {thought} " if thought else " "
    return f" <think>{inside}</think>{_CALL}{asked}{_END_CALL}"


def returns(replies: Sequence[tuple[int, str | None]]) -> str:
    """Format the replies: (expert, its reply or None if it is unavailable)."""
    entries = []
    for expert, reply in replies:
        if reply is None:
            entries.append(f"{expert}{_NOTHING}")
        else:
            entries.append(f"{expert}{_RESULT}{reply.replace(ANSWER, _SAID)}" + '"}')
    listed = ', {"expert_id": '.join(entries)
    return f"{_RETURN}{listed}]</agent_returns>\n"


def expert_example(chain: Chain, uniform: Uniform) -> Example:
    """Return a question and its correct solution."""
    values = own_values(chain, _NONE, uniform)
    return Example(lone_prompt(question_of(chain)), f" {solution(chain, values)}")


def lone_example(chain: Chain, habits: Habits, uniform: Uniform, *, panel: bool) -> Example:
    """Let the policy answer alone; with ``panel``, although it could have asked."""
    prompt = panel_prompt if panel else lone_prompt
    return Example(prompt(question_of(chain)), trace(chain, own_values(chain, habits, uniform)))


def call_example(
    chain: Chain, habits: Habits, uniform: Uniform, *, decomposed: float
) -> tuple[Example, Chain, list[int], list[int]]:
    """The policy asks; also what it asked about, its own first values and whom it asked."""
    first: list[int] = []
    thought, asked = "", chain
    if uniform() < decomposed:
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


def returned_example(
    chain: Chain,
    habits: Habits,
    uniform: Uniform,
    *,
    decomposed: float,
    unavailable: float,
    cut: float,
    scrambled: float,
) -> Example:
    """Return the policy's answer to replies: it copies the first one's values, right or wrong.

    A share ``scrambled`` of the values is random, so that they can be predicted only from the
    reply. If replies are truncated (a share ``cut``) or missing, the policy continues alone.
    """
    example, asked, first, seats = call_example(chain, habits, uniform, decomposed=decomposed)
    length = len(asked.operators)
    kept = 1 + int(uniform() * (length - 1)) if length > 1 and uniform() < cut else length
    advice: list[int] | None = None
    replies: list[tuple[int, str | None]] = []
    nobody = uniform() < unavailable
    for seat in seats:
        if nobody or (advice is not None and uniform() < unavailable):
            replies.append((seat, None))
            continue
        agrees = advice is not None and uniform() < 0.7
        said = (
            advice if advice is not None and agrees else scrambled_values(asked, uniform, scrambled)
        )
        advice = said if advice is None else advice
        whole = kept == length
        replies.append((seat, solution(asked, said) if whole else steps(asked, said, done=kept)))
    known = [] if advice is None else advice[:kept]
    values = [*first, *known, *own_values(_rest(asked, known), habits, uniform)]
    return Example(example.prompt + example.answer + returns(replies), trace(chain, values))


def _rest(chain: Chain, known: list[int]) -> Chain:
    """Return the part of ``chain`` after its first values."""
    if not known:
        return chain
    return Chain((known[-1], *chain.digits[len(known) + 1 :]), chain.operators[len(known) :])
