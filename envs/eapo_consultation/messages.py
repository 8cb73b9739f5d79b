r"""What passes between the policy, its experts and the environment, read and written.

A policy's calls are JSON that a language model wrote, with LaTeX in it. LaTeX inside JSON strings
breaks strict parsers twice: ``"\sigma"`` is an error, and ``"\tau"``, ``"\frac"``, ``"\nu"``,
``"\beta"``, ``"\rho"`` are read as control characters without a word.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coterie.datatypes import AnswerKind
from coterie.envs.bytes_codec import TextMeter
from coterie.envs.prompts import ExpertStyle, answer_sentence
from coterie.rewards.consultation import ANSWER, CALLS, RETURNS, THINK, read

Status = Literal["OK", "UNAVAILABLE", "ERROR", "BUDGET_EXHAUSTED"]

LONGEST = 1 << 16
"""Characters of a call; longer ones are refused unread."""

# Kept: \\ \" \/ \uXXXX, and \n where no letter follows. Every other backslash is LaTeX's.
_BACKSLASH = re.compile(r'\\(?:\\|"|/|u[0-9a-fA-F]{4}|n(?![A-Za-z]))|\\')
# Possessive, and an unclosed string runs to the end: one pass whatever the text.
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\[\s\S]?)*+(?:"|\Z)|,(?=\s*+[\]}])')

# EAPO, arXiv:2509.23730, appendix G: the prompt of training, word for word where three experts can
# be asked at once and ten times. Line breaks are ours, and the question's place, which is not said.
_PANEL = """\
You are a helpful assistant that can solve a given question step by step. To do so, you can \
consult with a panel of {experts}. Each question you can ask experts {budget} times totally. \
{at_once} The experts will provide their answers, which you can use to form your final response.

The agent call query and results are enclosed within <agent_calls> </agent_calls> and \
<agent_returns> </agent_returns> tags respectively. Agent calls query should be formatted as a \
list of dictionaries. For each agent call (an item in the list), you need to provide these keys:
(1) expert_id (int): Required. The ID of the expert you want to consult. Can be {ids}.
(2) input_parameters (dict): Required. All input parameters for the expert, in dictionary format.

Here are the experts you can use:
Description: This is a panel of {agents} that you can consult when you are unsure about the answer \
to a question. The agents responses may not always be correct, but they can offer you alternative \
perspectives to help you think further.
Parameters:
(1) query (str): Required. The query string describing the question you want to ask or discuss.
(2) The answer from the agent, including thinking process.

The reasoning process is wrapped by <think></think>. The final answer begins with "Answer: ".

For example:
User: What is the capital city of NomanLand and what is its main export?
Assistant: {example}
Answer: The capital of NomanLand is NomanCity and its main export is widgets.

{question}"""
_TOGETHER = """\
<think> This question has two parts. I will ask two different experts to answer each part. I'll \
ask expert 1 about the capital and expert 2 about the main export. </think>
<agent_calls> [{"expert_id": 1, "input_parameters": {"query": "capital city of NomanLand"}}, \
{"expert_id": 2, "input_parameters": {"query": "main export of NomanLand"}}] </agent_calls>
<agent_returns> [{"expert_id": 1, "result": "The capital city of NomanLand is NomanCity."}, \
{"expert_id": 2, "result": "The main export of NomanLand is widgets."}] </agent_returns>
<think> I see. Expert 1 says the capital is NomanCity, and Expert 2 says the main export is \
widgets. </think>"""
_ONE_BY_ONE = """\
<think> This question has two parts. I will ask an expert about both. </think>
<agent_calls> [{"expert_id": 1, "input_parameters": {"query": "capital city and main export of \
NomanLand"}}] </agent_calls>
<agent_returns> [{"expert_id": 1, "result": "The capital city of NomanLand is NomanCity, and its \
main export is widgets."}] </agent_returns>
<think> I see. Expert 1 says the capital is NomanCity and the main export is widgets. </think>"""
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# The same, told to a chat model in two sentences.
_SHORT_PANEL = """\
{question}

{sentence}
If you are not sure, ask an expert (1 to {experts}) first, as in <agent_calls>[{{"expert_id": 1, \
"input_parameters": {{"query": "your question"}}}}]</agent_calls>; the reply follows."""
_PLAIN_PANEL = "Question: {question}\nExperts: 1 to {experts}\nSolve:"


def training_prompt(
    question: str,
    style: ExpertStyle,
    *,
    experts: int,
    at_once: int,
    budget: int,
    kind: AnswerKind = "math",
) -> str:
    """The policy's message where experts can be consulted, ``at_once`` of them in one block."""
    if style == "plain":
        return _PLAIN_PANEL.format(question=question, experts=experts)
    if style == "answer":
        sentence = answer_sentence(kind)
        return _SHORT_PANEL.format(question=question, sentence=sentence, experts=experts)
    ids = ", ".join(map(str, range(1, experts + 1)))
    *first, last = ids.split(", ")
    comma = "," if len(first) > 1 else ""
    several = experts > 1
    return _PANEL.format(
        question=question,
        experts=f"{_number(experts)} expert{'s' * several}",
        agents=f"{_number(experts)} auxiliary intelligent agent{'s' * several} (ID {ids})",
        ids=f"{', '.join(first)}{comma} or {last}" if first else last,
        at_once=_at_once(experts, at_once),
        budget=budget,
        # Where one expert is asked at a time, it is asked for both things.
        example=_TOGETHER if at_once > 1 else _ONE_BY_ONE,
    )


def _at_once(experts: int, at_once: int) -> str:
    if at_once == 1:
        return "You can ask one expert at a time for their opinion."
    most = f", at most {_number(at_once)} at once," if at_once < experts else ""
    return (
        f"You can ask one or more experts{most} for their opinion. You can ask them the same "
        "question or different questions simultaneously."
    )


def _number(value: int) -> str:
    return _NUMBERS[value] if value < len(_NUMBERS) else str(value)


@dataclass(frozen=True)
class Move:
    """One turn, read once."""

    kind: Literal["answer", "call", "ignored call"]
    text: str
    tokens: int
    payload: str = ""
    """What stands between the tags of a call."""
    thinking: bool = False
    """Whether the turn ends inside a thought."""


def move_of(text: str, tokens: int, *, thinking: bool, may_call: bool) -> Move:
    """Read a turn.

    Args:
        text: what the policy wrote.
        tokens: the same in its tokens.
        thinking: whether the turn begins inside a thought.
        may_call: whether calls are more than text now.

    The last complete block of calls counts, unless an answer follows it. Inside a thought it is
    text, on which sampling has stopped all the same.
    """
    if not may_call:
        return Move("answer", text, tokens)
    reading = read(text, opened=thinking)
    if reading.calls:
        start, end = reading.calls[-1]
        if ANSWER not in text[end:]:
            return Move("call", text, tokens, text[start:end], reading.thinking)
    unanswered = reading.thought_calls and ANSWER not in text[reading.thought_calls[-1] :]
    if reading.thinking and unanswered:
        return Move("ignored call", text, tokens, thinking=True)
    return Move("answer", text, tokens)


@dataclass(frozen=True)
class Call:
    """One question to one expert."""

    expert_id: int
    """Counted from 1."""
    query: str


def parse_calls(text: str, experts: int, at_once: int | None = None) -> list[Call] | str:
    """The calls in ``text``, or a sentence that says what is wrong with it.

    Args:
        text: what stands between the tags.
        experts: ids go from 1 to this.
        at_once: most calls in it; as many as there are experts without it.

    Accepted: a list of objects ``{"expert_id": 1, "input_parameters": {"query": "..."}}``, a single
    object, commas before closing brackets. An expert can be asked one thing at a time.

    >>> parse_calls('{"expert_id": 2, "input_parameters": {"query": "$\\tau(n)$?"}}', 3)
    [Call(expert_id=2, query='$\\tau(n)$?')]
    """
    if len(text) > LONGEST:
        return f"the call has more than {LONGEST} characters"
    data = _loads(text)
    if data is None:
        return "the call is not JSON"
    items = [data] if isinstance(data, dict) else data
    if not isinstance(items, list) or not items:
        return "the call must be a list with at least one entry"
    if at_once is not None and len(items) > at_once:
        return f"at most {at_once} can be asked at once"
    calls: list[Call] = []
    for item in items:
        call = _call(item, experts)
        if isinstance(call, str):
            return call
        if any(call.expert_id == other.expert_id for other in calls):
            return f"expert {call.expert_id} is asked twice at once"
        calls.append(call)
    return calls


def escape_latex(text: str) -> str:
    r"""``text`` with every backslash doubled that JSON would misread.

    >>> escape_latex(r'"\frac12 \n"')
    '"\\\\frac12 \\n"'
    """
    return _BACKSLASH.sub(lambda match: match[0] if len(match[0]) > 1 else r"\\", text)


def _loads(text: str) -> Any:
    text = _STRING_OR_COMMA.sub(lambda m: "" if m[0] == "," else m[0], escape_latex(text))
    try:
        # Not strict: a line break inside a string is a line break.
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _call(item: Any, experts: int) -> Call | str:
    if not isinstance(item, dict):
        return "each entry of a call must be an object"
    expert_id, parameters = item.get("expert_id"), item.get("input_parameters")
    if type(expert_id) is not int or not 1 <= expert_id <= experts:
        return f"expert_id must be a whole number from 1 to {experts}"
    query = parameters.get("query") if isinstance(parameters, dict) else None
    if not isinstance(query, str) or not query.strip():
        return "input_parameters must hold a query"
    # A lone surrogate, which JSON can spell, is no text.
    return Call(expert_id, query.encode("utf-8", "replace").decode())


def as_result(text: str, meter: TextMeter, *, limit: int | None, thinking_tokens: int = 0) -> str:
    """The reply after the expert's thinking, at most ``limit`` tokens of it; empty where there is
    none. What is kept of the thinking stands in front, in its tags as the paper's prompt has it.

    Args:
        text: what the expert wrote.
        meter: of the reader's tokens.
        limit: the head of this many tokens is kept; None: the whole reply, its thinking included.
        thinking_tokens: as many of the last tokens of the thinking are kept, as far as the reply
            leaves room for them. A thought that was never closed has no reply after it.
    """
    thinking, closed, reply = text.rpartition(THINK[1])
    if not closed:
        thinking, opened, _ = text.partition(THINK[0])
        reply, thinking = (thinking, "") if opened else (text, "")
    reply, thinking = reply.strip(), thinking.strip().removeprefix(THINK[0]).strip()
    if not reply:
        return ""
    if limit is not None:
        room = limit - meter.count(_with_thinking("", reply))
        kept = max(0, min(thinking_tokens, room))
        thinking = meter.truncate(thinking, kept, keep="tail").strip() if kept else ""
        reply = meter.truncate(reply, limit).strip()
    return _with_thinking(thinking, reply) if thinking else reply


def _with_thinking(thinking: str, reply: str) -> str:
    return f"{THINK[0]}{thinking}{THINK[1]}\n{reply}"


@dataclass(frozen=True)
class ReturnEntry:
    """One entry of the list that is returned."""

    status: Status
    result: str = ""
    expert_id: int | None = None
    """None where the entry answers the call as a whole."""

    def as_json(self) -> str:
        """``status`` is written only where it is not OK."""
        data: dict[str, object] = {}
        if self.expert_id is not None:
            data["expert_id"] = self.expert_id
        data["result"] = self.result
        if self.status != "OK":
            data["status"] = self.status
        return _defuse(json.dumps(data, ensure_ascii=False))


def write_returns(entries: Sequence[ReturnEntry]) -> str:
    """The piece that continues the policy's turn."""
    listed = ", ".join(entry.as_json() for entry in entries)
    return f"\n{RETURNS[0]}[{listed}]{RETURNS[1]}\n"


def _defuse(text: str) -> str:
    r"""Tags of the conversation inside a reply close nothing: ``</`` becomes ``<\/``."""
    for opening, closing in (CALLS, RETURNS, THINK):
        text = text.replace(closing, closing.replace("/", r"\/"))
        text = text.replace(opening, opening.replace("<", r"\u003c"))
    return text
