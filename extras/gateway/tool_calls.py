"""Separates an answer's text from its tool calls."""

from collections.abc import Callable

from coterie.envs.tool_calls import find_calls
from coterie.extras.gateway.messages import ToolCall


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
    found = find_calls(text, one=one)
    calls = [call for call in found if call.name]
    # A tag before anything but an object is text about tags.
    malformed = sum(not call.name and text.startswith("{", call.end) for call in found)
    pieces, begin = [], 0
    for call in calls:
        pieces.append(text[begin : call.start])
        begin = call.end
    rest = "".join([*pieces, "" if one and calls else text[begin:]])
    named = (ToolCall(call_id(i), call.name, call.arguments) for i, call in enumerate(calls))
    return (rest.strip() if calls else rest), tuple(named), malformed
