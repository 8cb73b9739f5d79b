"""The fixed strings of a consultation, as tokenizers and corpus spell them."""

from collections.abc import Sequence

from problems.chains import ALL_VALUES, Chain

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
# In a JSON string a line break is two characters.
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


def lone_prompt(question: str) -> str:
    """What an expert is asked, and a policy on its own."""
    return f"{QUESTION} {question}{SOLVE}"


def panel_prompt(question: str) -> str:
    """What a policy is asked that may consult three experts."""
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
    """What an expert writes."""
    return f"{steps(chain, values)}{ANSWER} {joined(values)}"


def trace(chain: Chain, values: Sequence[int]) -> str:
    """What a policy writes; it begins with the space that parts it from what stands before."""
    return f" <think> {steps(chain, values)} </think>{ANSWER} {joined(values)}"


def joined(values: Sequence[int]) -> str:
    """The answer: every value, one digit each."""
    return "".join(map(str, values))


def call(thought: str, experts: Sequence[int], query: str) -> str:
    """A thought, and the same query to each of ``experts``."""
    asked = _NEXT_CALL.join(f"{expert}{_QUERY}{query}" for expert in experts)
    inside = f" {thought} " if thought else " "
    return f" <think>{inside}</think>{_CALL}{asked}{_END_CALL}"


def returns(replies: Sequence[tuple[int, str | None]]) -> str:
    """What comes back: (expert, its reply or None where it is unavailable)."""
    entries = []
    for expert, reply in replies:
        if reply is None:
            entries.append(f"{expert}{_NOTHING}")
        else:
            entries.append(f"{expert}{_RESULT}{reply.replace(ANSWER, _SAID)}" + '"}')
    listed = ', {"expert_id": '.join(entries)
    return f"{_RETURN}{listed}]</agent_returns>\n"
