"""From messages to the exact tokens of a role, and back: what was sampled is never encoded again.

Where a request begins with a conversation that the role has had, its context is the earlier ids,
followed by the new messages. Any other request begins a context of its own.
"""

import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import TokenCodec
from coterie.extras.gateway.messages import (
    Answer,
    Message,
    Request,
    Tool,
    ToolCall,
    canonical_json,
    prefix_digests,
)

Tokens = npt.NDArray[np.int64]

_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_TOOL_INTRODUCTION = (
    'To call a tool write <tool_call>{"name": ..., "arguments": {...}}</tool_call>. The tools, as '
    "JSON schemas:"
)


@dataclass
class Node:
    """A context with its answer."""

    ids: Tokens
    ended: bool
    """Whether the model itself ended its turn."""
    turn: int
    """Which turn of the role it was."""
    parent: bytes
    """Names the request that it answers."""
    continued: bool = False
    """Whether a later request began with it."""


class Contexts:
    """All that one role has read and written in an episode."""

    def __init__(self, codec: TokenCodec, role: str = "") -> None:
        self.codec, self._role = codec, role
        self.counts: Counter[str] = Counter()
        """How requests began: ``bridged`` behind a known context, or why with a new one: ``new``
        (nothing of the role is in it), ``rewritten`` (what is, is no longer what it was). And
        ``malformed``: calls of tools that could not be read, and stayed text;
        ``sampling_ignored``: requests that name a temperature or a top-p."""
        self._nodes: dict[bytes, Node] = {}
        """By the conversation that they end."""
        self._all: list[Node] = []

    def open(self, request: Request) -> Tokens:
        """The ids that the role is shown."""
        digests = prefix_digests(request.messages, request.tools)
        messages = request.messages
        if request.names_sampling:
            self.counts["sampling_ignored"] += 1
        for count in range(len(messages) - 1, 0, -1):
            node = self._nodes.get(digests[count - 1])
            if messages[count - 1].speaker != "assistant" or node is None:
                continue
            if any(message.speaker == "assistant" for message in messages[count:]):
                break
            node.continued = True
            self.counts["bridged"] += 1
            more = self.codec.follow(_text_of(messages[count:]), ended=node.ended)
            return np.concatenate([node.ids, np.asarray(more, dtype=np.int64)])
        own = any(message.speaker == "assistant" for message in messages)
        self.counts["rewritten" if own else "new"] += 1
        ids = self._render(messages, request.tools)
        # Nothing at all is no context: what a role said may be empty, and be another's question.
        return ids if len(ids) else np.asarray(self.codec.open("\n"), dtype=np.int64)

    def close(
        self, request: Request, shown: Tokens, sampled: Tokens, *, turn: int, limit: int
    ) -> Answer:
        """What ``sampled`` says; from here on it is known.

        Args:
            request: what was asked.
            shown: the ids that it was asked in.
            sampled: ids.
            turn: which turn of the role it is.
            limit: most ids that there could be.
        """
        text = self.codec.decode(sampled)
        ended = len(sampled) > 0 and not self.codec.decode(sampled[-1:])
        stops = [text.find(mark) for mark in request.stop if mark in text]
        said = text[: min(stops)] if stops else text
        calls: tuple[ToolCall, ...] = ()
        if request.tools:
            said, calls = self._calls(said, turn)
        answer = Answer(
            said,
            calls,
            cut=not (ended or stops) and len(sampled) >= limit,
            prompt_tokens=len(shown),
            completion_tokens=len(sampled),
            id=secrets.token_hex(12),
        )
        names = prefix_digests([*request.messages, answer.message()], request.tools)
        ids = np.concatenate([shown, sampled])
        self._nodes[names[-1]] = node = Node(ids, ended, turn, names[-2])
        self._all.append(node)
        return answer

    def twins(self) -> set[int]:
        """Turns that nobody went on with while a twin of theirs, an answer to the same request,
        was gone on with."""
        siblings: dict[bytes, list[Node]] = {}
        for node in self._all:
            siblings.setdefault(node.parent, []).append(node)
        return {
            node.turn
            for nodes in siblings.values()
            if any(node.continued for node in nodes)
            for node in nodes
            if not node.continued
        }

    def _render(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Tokens:
        """A whole conversation, as the role's chat template has it; where there is none, or it
        refuses, turn by turn as contexts grow here."""
        if len(messages) > 1 or messages[0].speaker != "user" or tools:
            shown_tools = tools if getattr(self.codec, "knows_tools", False) else ()
            shown = messages if shown_tools or not tools else _introducing(messages, tools)
            if (by_template := self._by_template(shown, shown_tools)) is not None:
                return np.asarray(by_template, dtype=np.int64)
        ids: list[int] = []
        waiting: list[Message] = []
        begun = False
        for message in messages:
            if message.speaker != "assistant":
                waiting.append(message)
                continue
            if waiting or not begun:
                ids += self._given(waiting, tools, begun)
            ids += self.codec.extend(_spoken(message))
            waiting, begun = [], True
        return np.asarray(ids + self._given(waiting, tools, begun), dtype=np.int64)

    def _by_template(self, messages: Sequence[Message], tools: Sequence[Tool]) -> list[int] | None:
        open_chat = getattr(self.codec, "open_chat", None)
        if open_chat is None:
            return None
        return open_chat(
            [_plain(message) for message in messages], [_schema(tool) for tool in tools]
        )

    def _given(self, messages: Sequence[Message], tools: Sequence[Tool], begun: bool) -> list[int]:
        if begun:
            return self.codec.follow(_text_of(messages), ended=False)
        return self.codec.open(_with_tools(_text_of(messages), tools))

    def _calls(self, text: str, turn: int) -> tuple[str, tuple[ToolCall, ...]]:
        """(the text without them, calls); what cannot be read as one stays text."""
        calls: list[ToolCall] = []

        def read(match: re.Match[str]) -> str:
            try:
                call = json.loads(match[1])
                name, given = call["name"], call.get("arguments", {})
                if not (isinstance(name, str) and name and isinstance(given, dict)):
                    raise ValueError
            except (ValueError, LookupError, TypeError, RecursionError):
                self.counts["malformed"] += 1
                return match[0]
            identity = self._call_id(turn, len(calls))
            calls.append(ToolCall(identity, name, canonical_json(given)))
            return ""

        left = _CALL.sub(read, text)
        return (left.strip() if calls else left), tuple(calls)

    def _call_id(self, turn: int, place: int) -> str:
        """Unique in an episode, as programs show one role what another called; the same in every
        run; nine letters and digits, as some chat templates ask for."""
        whole = f"{self._role} {turn} {place}".encode()
        return hashlib.blake2b(whole, digest_size=5).hexdigest()[:9]


def _text_of(messages: Sequence[Message]) -> str:
    return "\n".join(
        f"<tool_response>\n{message.text}\n</tool_response>"
        if message.speaker == "tool"
        else message.text
        for message in messages
    )


def _introducing(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """The same; the first message introduces the tools."""
    first, *others = messages
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
