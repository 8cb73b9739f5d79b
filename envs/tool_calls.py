"""Reads tool calls in an answer: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``.

This is the format of Hermes, and of the chat templates of Qwen 2.5 and Qwen 3.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coterie.datatypes.thinking import CLOSING, OPENING, leading_tag

_INTRODUCTION = (
    'To call a tool write <tool_call>{"name": ..., "arguments": {...}}</tool_call>. The tools, as '
    "JSON schemas:"
)
_END = "</tool_call>"
_CUT_OFF = "|".join(_END[:length] for length in range(len(_END), 0, -1))
_CALL_END = re.compile(rf"\s*(?:{_END}|(?=<tool_call>)|(?:{_CUT_OFF})?\Z)")
"""Models often leave out the closing tag before the next call and at the end of their turn, where
it may also be cut off."""
_CALL_KEYS = frozenset({"name", "arguments", "parameters", "id", "type"})


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


class _Uncounted(str):
    """A text whose lines an error of the decoder does not count, which would take quadratic time
    for an answer of many broken calls."""

    def count(self, *_: Any) -> int:
        return 0

    def rfind(self, *_: Any) -> int:
        return 0


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)  # NaN and Infinity are not JSON


@dataclass(frozen=True)
class FoundCall:
    """A call in a text, or what should be one."""

    start: int
    """Where its opening tag begins."""
    end: int
    """Where the text goes on; of a malformed call, behind the opening tag."""
    name: str = ""
    """Empty: the call is malformed."""
    arguments: str = ""
    """A JSON object with sorted keys."""


def find_calls(text: str, *, one: bool = False) -> list[FoundCall]:
    """Return the calls of an answer in order; calls inside a thought do not count.

    Args:
        text: the answer, with the mark of a thought that the prompt opened.
        one: stop at the first call that is not malformed.
    """
    calls: list[FoundCall] = []
    uncounted = _Uncounted(text)
    tag, position = leading_tag(text), 0
    marks, thinking = _marks(tag), bool(tag)
    while mark := marks.search(text, position):
        position = mark.end()
        if mark["opens"]:
            thinking = True
        elif mark["closes"]:
            # Everything before it was a thought, even without an opening tag.
            thinking, calls = False, []
        elif not thinking:
            calls.append(_read_call(uncounted, mark.start(), position))
            position = calls[-1].end
            if one and calls[-1].name:
                break
    return calls


def introduce(tools: Sequence[str], text: str) -> str:
    """Return ``text`` behind a description of the tools, for models without a template for them.

    Args:
        tools: each as a JSON object with name, description and parameters.
        text: the message.
    """
    return "\n".join([_INTRODUCTION, *tools, "", text]) if tools else text


def as_response(text: str) -> str:
    """Return a tool's result as text of the user."""
    return f"<tool_response>\n{text}\n</tool_response>"


def _marks(tag: str) -> re.Pattern[str]:
    """Match the start of a call, and both ends of a thought; ``tag`` is the text's leading tag."""
    closing = rf"{CLOSING}|</{tag}>" if tag else CLOSING
    return re.compile(rf"(?P<opens>(?i:{OPENING}))|(?P<closes>(?i:{closing}))|<tool_call>\s*")


def _read_call(text: str, start: int, begin: int) -> FoundCall:
    """Read the JSON at ``begin``, behind the tag at ``start``."""
    try:
        call, stop = _JSON.raw_decode(text, begin)
        end = _CALL_END.match(text, stop)
        name, parsed = call["name"], _arguments(call)
        if not (isinstance(name, str) and name and isinstance(parsed, dict) and end):
            return FoundCall(start, begin)
        arguments = json.dumps(parsed, sort_keys=True, ensure_ascii=False, allow_nan=False)
        f"{name}{arguments}".encode()  # JSON can spell half of a surrogate pair, which is no text
    except (ValueError, LookupError, TypeError, RecursionError):
        return FoundCall(start, begin)
    return FoundCall(start, end.end(), name, arguments)


def _arguments(call: dict[str, Any]) -> Any:
    # Some models call them "parameters", write them as a string, or leave them empty for a tool
    # without arguments. Other keys are arguments beside the name: too ambiguous to read.
    if not _CALL_KEYS.issuperset(call) or {"arguments", "parameters"} <= call.keys():
        return None
    arguments = call.get("arguments", call.get("parameters"))
    if isinstance(arguments, str):
        arguments = _JSON.decode(arguments) if arguments.strip() else None
    return {} if arguments is None else arguments
