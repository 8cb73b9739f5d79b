"""Renders a conversation as the ids of one role: by its chat template, or turn by turn."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import TokenCodec
from coterie.envs.tool_calls import as_response, introduce
from coterie.extras.gateway.messages import Message, Refused, Request, Tool

Tokens = npt.NDArray[np.int64]

_PIECE = 8192
"""Characters to tokenize at once; the event loop stands still meanwhile."""
_SEAM = 8
"""Maximum number of additional tokens that the cut at the end of a piece makes."""


def render(codec: TokenCodec, messages: Sequence[Message], tools: Sequence[Tool]) -> Tokens:
    """Render a whole conversation by the role's chat template. Without a template, or if it fails,
    render it turn by turn, as contexts grow."""
    if len(messages) > 1 or messages[0].speaker != "user" or tools:
        known = getattr(codec, "knows_tools", False)
        shown = messages if known else _introducing(messages, tools)
        if (by_template := _by_template(codec, shown, tools if known else ())) is not None:
            return np.asarray(by_template, dtype=np.int64)
    ids: list[int] = []
    unread: list[Message] = []
    first = True
    for message in messages:
        if message.speaker != "assistant":
            unread.append(message)
            continue
        if unread or first:
            ids += _read_by_role(codec, unread, tools, first=first)
        ids += codec.extend(_spoken(message))
        unread, first = [], False
    ids += _read_by_role(codec, unread, tools, first=first)
    # A context needs one token: the text of another role may be empty.
    return np.asarray(ids or codec.open("\n"), dtype=np.int64)


def follow(codec: TokenCodec, messages: Sequence[Message], *, eos_id: int | None) -> Tokens:
    """Render messages that follow an answer by the role's chat template. Without a template, or if
    it fails, render them as one message of the user.

    Args:
        codec: the codec of the role.
        messages: messages of other speakers.
        eos_id: the id with which the model itself ended its answer, if it did.
    """
    ended = {"ended": eos_id is not None, "mark": eos_id}
    follow_chat = getattr(codec, "follow_chat", None)
    if follow_chat is not None and (len(messages) > 1 or messages[0].speaker != "user"):
        ids = follow_chat([_plain(message) for message in messages], **ended)
        if ids is not None:
            return np.asarray(ids, dtype=np.int64)
    return np.asarray(codec.follow(_text_of(messages), **ended), dtype=np.int64)


async def refuse_too_long(codec: TokenCodec | None, role: str, request: Request) -> None:
    """Refuse messages that do not fit the role's context, before they are rendered.

    The tokens are counted piece by piece, and no longer than they fit: however long a request is,
    no more of it than one context and one piece is tokenized.

    Args:
        codec: the role's codec; only one with a ``context`` and ``at_least`` sets a limit.
        role: the role that answers.
        request: the request.

    Raises:
        Refused: the messages are too long.
    """
    context: int | None = getattr(codec, "context", None)
    size = sum(map(len, _texts(request)))
    # Short enough to render: GatewayEpisode.observe counts what the role would read.
    if context is None or size <= max(_PIECE, context // 4):
        return
    at_least = codec.at_least  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    left = context
    for text in _texts(request):
        for start in range(0, len(text), _PIECE):
            left -= max(0, at_least(text[start : start + _PIECE]) - _SEAM)
            if left < 0:
                raise Refused(
                    400,
                    f"the messages have {size:,} characters, more than the {context:,} tokens of "
                    f"{role}'s context: send fewer",
                )
            await asyncio.sleep(0)


def _texts(request: Request) -> Iterator[str]:
    for message in request.messages:
        yield message.text.strip()  # chat templates strip it, too
        for call in message.calls:
            yield call.arguments
    for tool in request.tools:
        yield tool.description
        yield tool.parameters


def _by_template(
    codec: TokenCodec, messages: Sequence[Message], tools: Sequence[Tool]
) -> list[int] | None:
    open_chat = getattr(codec, "open_chat", None)
    if open_chat is None:
        return None
    return open_chat([_plain(message) for message in messages], [_schema(tool) for tool in tools])


def _read_by_role(
    codec: TokenCodec, messages: Sequence[Message], tools: Sequence[Tool], *, first: bool
) -> list[int]:
    if first:
        return codec.open(_with_tools(_text_of(messages), tools))
    return codec.follow(_text_of(messages), ended=False)


def _text_of(messages: Sequence[Message]) -> str:
    return "\n".join(
        as_response(message.text) if message.speaker == "tool" else message.text
        for message in messages
    )


def _introducing(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """Introduce the tools in the first message, and write calls as text."""
    first, *others = (
        replace(message, text=_spoken(message), calls=()) if message.calls else message
        for message in messages
    )
    return [replace(first, text=_with_tools(first.text, tools)), *others]


def _plain(message: Message) -> dict[str, Any]:
    """A message as chat templates expect it."""
    plain: dict[str, Any] = {"role": message.speaker, "content": message.text}
    if message.answers:
        plain["tool_call_id"] = message.answers
    if message.calls:
        plain["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _parsed(call.arguments)},
            }
            for call in message.calls
        ]
    return plain


def _schema(tool: Tool) -> dict[str, Any]:
    """A tool as chat templates expect it."""
    function = {"name": tool.name, "description": tool.description}
    schema = _parsed(tool.written or tool.parameters)
    return {"type": "function", "function": {**function, "parameters": schema}}


def _parsed(text: str) -> Any:
    """Parse JSON; return other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _with_tools(text: str, tools: Sequence[Tool]) -> str:
    shown_tools = [
        f'{{"name": {json.dumps(tool.name)}, "description": {json.dumps(tool.description)}, '
        f'"parameters": {tool.written or tool.parameters}}}'
        for tool in tools
    ]
    return introduce(shown_tools, text)


def _spoken(message: Message) -> str:
    calls = (
        f'<tool_call>{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}</tool_call>'
        for call in message.calls
    )
    return "\n".join(filter(None, [message.text, *calls]))
