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

from coterie.datatypes.thinking import after_thinking, split_thinking
from coterie.envs.bytes_codec import TextMeter
from coterie.rewards.consultation import ANSWER, CALLS, RETURNS, THINK, read

Status = Literal["OK", "UNAVAILABLE", "ERROR", "BUDGET_EXHAUSTED"]

LONGEST = 1 << 16
"""Characters of a call; longer ones are refused unread."""

# Kept: \\ \" \/ \uXXXX, and \n where no letter follows. Every other backslash is LaTeX's.
_BACKSLASH = re.compile(r'\\(?:\\|"|/|u[0-9a-fA-F]{4}|n(?![A-Za-z]))|\\')
# Possessive, and an unclosed string runs to the end: one pass whatever the text.
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\[\s\S]?)*+(?:"|\Z)|,(?=\s*+[\]}])')


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
class ExpertCall:
    """One question to one expert."""

    expert_id: int
    """Counted from 1."""
    query: str


def parse_calls(text: str, experts: int, at_once: int | None = None) -> list[ExpertCall] | str:
    """The calls in ``text``, or a sentence that says what is wrong with it.

    Args:
        text: what stands between the tags.
        experts: ids go from 1 to this.
        at_once: most calls in it; as many as there are experts without it.

    Accepted: a list of objects ``{"expert_id": 1, "input_parameters": {"query": "..."}}``, a single
    object, commas before closing brackets. An expert can be asked one thing at a time.

    >>> parse_calls('{"expert_id": 2, "input_parameters": {"query": "$\\tau(n)$?"}}', 3)
    [ExpertCall(expert_id=2, query='$\\tau(n)$?')]
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
    calls: list[ExpertCall] = []
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


def _call(item: Any, experts: int) -> ExpertCall | str:
    if not isinstance(item, dict):
        return "each entry of a call must be an object"
    expert_id, parameters = item.get("expert_id"), item.get("input_parameters")
    if type(expert_id) is not int or not 1 <= expert_id <= experts:
        return f"expert_id must be a whole number from 1 to {experts}"
    query = parameters.get("query") if isinstance(parameters, dict) else None
    if not isinstance(query, str) or not query.strip():
        return "input_parameters must hold a query"
    # A lone surrogate, which JSON can spell, is no text.
    return ExpertCall(expert_id, query.encode("utf-8", "replace").decode())


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
    (thinking, closed), reply = split_thinking(text), after_thinking(text).strip()
    thinking = "" if closed is None else thinking
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
