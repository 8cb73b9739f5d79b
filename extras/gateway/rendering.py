"""A conversation as the ids of one role: by its chat template, or turn by turn."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import TokenCodec
from coterie.extras.gateway.messages import Message, Tool

Tokens = npt.NDArray[np.int64]

_TOOL_INTRODUCTION = (
    'To call a tool write <tool_call>{"name": ..., "arguments": {...}}</tool_call>. The tools, as '
    "JSON schemas:"
)


def render(codec: TokenCodec, messages: Sequence[Message], tools: Sequence[Tool]) -> Tokens:
    """A whole conversation, as the role's chat template has it; where there is none, or it refuses,
    turn by turn as contexts grow."""
    if len(messages) > 1 or messages[0].speaker != "user" or tools:
        known = getattr(codec, "knows_tools", False)
        shown = messages if known else _introducing(messages, tools)
        if (by_template := _by_template(codec, shown, tools if known else ())) is not None:
            return np.asarray(by_template, dtype=np.int64)
    ids: list[int] = []
    waiting: list[Message] = []
    begun = False
    for message in messages:
        if message.speaker != "assistant":
            waiting.append(message)
            continue
        if waiting or not begun:
            ids += _given(codec, waiting, tools, begun)
        ids += codec.extend(_spoken(message))
        waiting, begun = [], True
    ids += _given(codec, waiting, tools, begun)
    # Nothing at all is no context: what a role said may be empty, and be another's question.
    return np.asarray(ids or codec.open("\n"), dtype=np.int64)


def follow(codec: TokenCodec, messages: Sequence[Message], *, mark: int | None) -> Tokens:
    """Messages of others behind an answer, as the role's chat template has them; where there is
    none, or it refuses, as one message of the user.

    Args:
        codec: the role's.
        messages: none of the assistant's.
        mark: the id with which the model itself ended its answer, if it did.
    """
    ended = {"ended": mark is not None, "mark": mark}
    follow_chat = getattr(codec, "follow_chat", None)
    if follow_chat is not None and (len(messages) > 1 or messages[0].speaker != "user"):
        ids = follow_chat([_plain(message) for message in messages], **ended)
        if ids is not None:
            return np.asarray(ids, dtype=np.int64)
    return np.asarray(codec.follow(_text_of(messages), **ended), dtype=np.int64)


def _by_template(
    codec: TokenCodec, messages: Sequence[Message], tools: Sequence[Tool]
) -> list[int] | None:
    open_chat = getattr(codec, "open_chat", None)
    if open_chat is None:
        return None
    return open_chat([_plain(message) for message in messages], [_schema(tool) for tool in tools])


def _given(
    codec: TokenCodec, messages: Sequence[Message], tools: Sequence[Tool], begun: bool
) -> list[int]:
    if begun:
        return codec.follow(_text_of(messages), ended=False)
    return codec.open(_with_tools(_text_of(messages), tools))


def _text_of(messages: Sequence[Message]) -> str:
    return "\n".join(
        f"<tool_response>\n{message.text}\n</tool_response>"
        if message.speaker == "tool"
        else message.text
        for message in messages
    )


def _introducing(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """The same; the first message introduces the tools, and calls are text."""
    first, *others = (
        replace(message, text=_spoken(message), calls=()) if message.calls else message
        for message in messages
    )
    return [replace(first, text=_with_tools(first.text, tools)), *others]


def _plain(message: Message) -> dict[str, Any]:
    """A message as chat templates take it."""
    plain: dict[str, Any] = {"role": message.speaker, "content": message.text}
    if message.answers:
        plain["tool_call_id"] = message.answers
    if message.calls:
        plain["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _read(call.arguments)},
            }
            for call in message.calls
        ]
    return plain


def _schema(tool: Tool) -> dict[str, Any]:
    """A tool as chat templates take it."""
    function = {"name": tool.name, "description": tool.description}
    return {"type": "function", "function": {**function, "parameters": _read(tool.parameters)}}


def _read(text: str) -> Any:
    """JSON, or text that is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _with_tools(text: str, tools: Sequence[Tool]) -> str:
    if not tools:
        return text
    shown_tools = "\n".join(
        f'{{"name": {json.dumps(tool.name)}, "description": {json.dumps(tool.description)}, '
        f'"parameters": {tool.parameters}}}'
        for tool in tools
    )
    return f"{_TOOL_INTRODUCTION}\n{shown_tools}\n\n{text}"


def _spoken(message: Message) -> str:
    calls = (
        f'<tool_call>{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}</tool_call>'
        for call in message.calls
    )
    return "\n".join(filter(None, [message.text, *calls]))
