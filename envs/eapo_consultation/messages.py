r"""Messages between the policy, its experts and the environment: parsers and writers.

Calls are JSON from a language model, with LaTeX in its strings. Strict parsers fail on
``"\sigma"``, and silently turn ``"\tau"``, ``"\frac"``, ``"\nu"``, ``"\beta"`` and ``"\rho"`` into
control characters.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coterie.datatypes.thinking import after_thinking, split_thinking
from coterie.envs.bytes_codec import TextMeter
from coterie.rewards.consultation import CALLS, RETURNS, STATES_ANSWER, THINK, read

Status = Literal["OK", "UNAVAILABLE", "ERROR", "BUDGET_EXHAUSTED"]

# Keep \\ \" \/ \uXXXX, and \n before a non-letter. Every other backslash belongs to LaTeX.
_BACKSLASH = re.compile(r'\\(?:\\|"|/|u[0-9a-fA-F]{4}|n(?![A-Za-z]))|\\')
# Possessive, and an unclosed string runs to the end: linear time for any text.
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\[\s\S]?)*+(?:"|\Z)|,(?=\s*+[\]}])')


@dataclass(frozen=True)
class Move:
    """A parsed turn of the policy."""

    kind: Literal["answer", "call", "ignored call"]
    text: str
    tokens: int
    payload: str = ""
    """The text between the tags of a call."""
    thinking: bool = False
    """Whether the turn ends inside a thought."""


def move_of(text: str, tokens: int, *, thinking: bool, may_call: bool) -> Move:
    """Parse a turn.

    The last complete block of calls counts, unless an answer follows it. A block inside a thought
    is ignored, although sampling has stopped at it.

    Args:
        text: the policy's text.
        tokens: its length in the policy's tokens.
        thinking: whether the turn begins inside a thought.
        may_call: whether calls are possible; otherwise they are ordinary text.
    """
    if not may_call:
        return Move("answer", text, tokens)
    reading = read(text, opened=thinking)
    if reading.calls:
        start, end = reading.calls[-1]
        if STATES_ANSWER.search(text, end) is None:
            return Move("call", text, tokens, text[start:end], reading.thinking)
    unanswered = (
        reading.thought_calls and STATES_ANSWER.search(text, reading.thought_calls[-1]) is None
    )
    if reading.thinking and unanswered:
        return Move("ignored call", text, tokens, thinking=True)
    return Move("answer", text, tokens)


@dataclass(frozen=True)
class ExpertCall:
    """A query to one expert."""

    expert_id: int
    """Counted from 1."""
    query: str


def parse_calls(text: str, experts: int, at_once: int | None = None) -> list[ExpertCall] | str:
    """Parse the calls in ``text``; return them, or an error message.

    Valid are a list of objects ``{"expert_id": 1, "input_parameters": {"query": "..."}}`` or a
    single object; commas before closing brackets are tolerated. Each expert can have one query.

    Args:
        text: the text between the tags.
        experts: the largest id; ids begin at 1.
        at_once: most calls; None: the number of experts.

    >>> parse_calls('{"expert_id": 2, "input_parameters": {"query": "$\\tau(n)$?"}}', 3)
    [ExpertCall(expert_id=2, query='$\\tau(n)$?')]
    """
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
    r"""Double every backslash of ``text`` that JSON would misread.

    >>> escape_latex(r'"\frac12 \n"')
    '"\\\\frac12 \\n"'
    """
    return _BACKSLASH.sub(lambda match: match[0] if len(match[0]) > 1 else r"\\", text)


def _loads(text: str) -> Any:
    text = _STRING_OR_COMMA.sub(lambda m: "" if m[0] == "," else m[0], escape_latex(text))
    try:
        # strict=False allows line breaks inside strings.
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
    # JSON can write lone surrogates, which no file can hold.
    return ExpertCall(expert_id, query.encode("utf-8", "replace").decode())


def as_result(text: str, meter: TextMeter, *, limit: int | None, thinking_tokens: int = 0) -> str:
    """Return an expert's reply, truncated to ``limit`` tokens; "" without a reply. The last tokens
    of its thinking may precede it, in tags as in the paper's prompt.

    Args:
        text: the expert's text. A thought that is never closed has no reply after it.
        meter: meter of the reader's tokens.
        limit: most tokens of the reply, whose head is kept; None: the whole text with its thinking.
        thinking_tokens: most tokens of the thinking, whose tail is kept, if the reply leaves room.
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
    """An entry of the list that the policy gets."""

    status: Status
    result: str = ""
    expert_id: int | None = None
    """None: the entry answers the whole block of calls."""

    def as_json(self) -> str:
        """Return the entry as JSON; ``status`` is omitted if it is OK."""
        data: dict[str, object] = {}
        if self.expert_id is not None:
            data["expert_id"] = self.expert_id
        data["result"] = self.result
        if self.status != "OK":
            data["status"] = self.status
        return _defuse(json.dumps(data, ensure_ascii=False))


def write_returns(entries: Sequence[ReturnEntry]) -> str:
    """Return the text that continues the policy's turn."""
    listed = ", ".join(entry.as_json() for entry in entries)
    return f"\n{RETURNS[0]}[{listed}]{RETURNS[1]}\n"


def _defuse(text: str) -> str:
    r"""Escape the conversation's tags inside a reply: ``</`` becomes ``<\/``."""
    for opening, closing in (CALLS, RETURNS, THINK):
        text = text.replace(closing, closing.replace("/", r"\/"))
        text = text.replace(opening, opening.replace("<", r"\u003c"))
    return text
