"""Reads tool calls in an answer: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``."""

import json
import re
from collections.abc import Callable
from typing import Any

from coterie.datatypes.thinking import CLOSING, OPENING, leading_tag
from coterie.extras.gateway.messages import ToolCall

_CALL_END = re.compile(r"\s*(?:</tool_call>|(?=<tool_call>)|\Z)")
"""Models often leave out the closing tag before the next call and at the end of their turn."""
_CALL_KEYS = frozenset({"name", "arguments", "parameters", "id", "type"})


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)  # NaN and Infinity are not JSON


def read_calls(
    text: str, call_id: Callable[[int], str], *, one: bool
) -> tuple[str, tuple[ToolCall, ...], int]:
    """Return (the text without its calls, the calls, how many calls were malformed).

    A malformed call stays in the text, and so does a call inside a thought.

    Args:
        text: the answer, without a thought that the prompt opened.
        call_id: index of a call -> its id.
        one: cut the text after the first call.
    """
    pieces: list[str] = []
    calls: list[ToolCall] = []
    begin = position = malformed = 0
    tag = leading_tag(text)
    marks, thinking = _marks(tag), bool(tag)
    while mark := marks.search(text, position):
        position = mark.end()
        if mark["opens"]:
            thinking = True
        elif mark["closes"]:
            # Everything before it was a thought, even without an opening tag.
            thinking, begin, malformed = False, 0, 0
            pieces, calls = [], []
        elif not thinking:
            if (read := _read_call(text, position)) is None:
                malformed += 1
                continue
            name, arguments, position = read
            calls.append(ToolCall(call_id(len(calls)), name, arguments))
            pieces.append(text[begin : mark.start()])
            begin = position
            if one:
                text = text[:position]
    rest = "".join([*pieces, text[begin:]])
    return (rest.strip() if calls else rest), tuple(calls), malformed


def _marks(tag: str) -> re.Pattern[str]:
    """Match the start of a call, and both ends of a thought; ``tag`` is the text's leading tag."""
    closing = rf"{CLOSING}|</{tag}>" if tag else CLOSING
    return re.compile(
        rf"(?P<opens>(?i:{OPENING}))|(?P<closes>(?i:{closing}))|<tool_call>\s*(?=\{{)"
    )


def _read_call(text: str, start: int) -> tuple[str, str, int] | None:
    """Read the JSON at ``start``: (name, arguments, end of the call), or None if it is no call."""
    try:
        call, stop = _JSON.raw_decode(text, start)
        end = _CALL_END.match(text, stop)
        name, parsed = call["name"], _arguments(call)
        if not (isinstance(name, str) and name and isinstance(parsed, dict) and end):
            return None
        arguments = json.dumps(parsed, sort_keys=True, ensure_ascii=False, allow_nan=False)
        f"{name}{arguments}".encode()  # JSON can spell half of a surrogate pair, which is no text
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return name, arguments, end.end()


def _arguments(call: dict[str, Any]) -> Any:
    # Some models call them "parameters", write them as a string, or leave them empty for a tool
    # without arguments. Other keys are arguments beside the name: too ambiguous to read.
    if not _CALL_KEYS.issuperset(call) or {"arguments", "parameters"} <= call.keys():
        return None
    arguments = call.get("arguments", call.get("parameters"))
    if isinstance(arguments, str):
        arguments = _JSON.decode(arguments) if arguments.strip() else None
    return {} if arguments is None else arguments
