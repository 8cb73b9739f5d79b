"""Requests and answers in one form, which all wires translate into."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Speaker = Literal["system", "user", "assistant", "tool"]


class Refused(Exception):
    """A request is refused with an HTTP status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@dataclass(frozen=True)
class ToolCall:
    """A tool call of an assistant."""

    id: str
    name: str
    arguments: str
    """A JSON object with sorted keys."""


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    speaker: Speaker
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls of an assistant."""
    answers: str = ""
    """Id of the call that the message of a tool answers."""


@dataclass(frozen=True)
class Tool:
    """A tool that an assistant may call."""

    name: str
    description: str
    parameters: str
    """A JSON schema with sorted keys."""
    written: str = field(default="", compare=False, repr=False)
    """The schema in the program's own order, in which a model writes arguments; "": as above."""


@dataclass(frozen=True)
class Request:
    """One request of a program to a role."""

    messages: tuple[Message, ...]
    model: str = ""
    tools: tuple[Tool, ...] = ()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    sampling: Mapping[str, float] = field(default_factory=dict)
    """The requested ``temperature`` and ``top_p``; training uses those of the run instead."""
    ignored: bool = False
    """Whether the request has a sampling setting that is never applied."""
    one_call: bool = False
    """Whether the answer may call at most one tool."""


@dataclass(frozen=True)
class Answer:
    """The answer of a role."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False
    """Whether it ended at the limit of tokens."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    id: str = field(default="", compare=False)
    """Its id on the wire."""

    def message(self) -> Message:
        """The message that the program sends back in its next request."""
        return Message("assistant", self.text, self.calls)


def canonical_json(value: Any, *, sort: bool = True) -> str:
    """Write ``value`` as JSON, with sorted keys or in its own order. Text is parsed first; text
    that is no JSON stays as it is."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            return value
    return json.dumps(value, sort_keys=sort, ensure_ascii=False)


def prefix_digests(messages: Sequence[Message], tools: Sequence[Tool]) -> list[bytes]:
    """Digests of the first message, the first two, ...; each covers the tools as well."""
    digest = hashlib.blake2b(repr(tuple(tools)).encode("utf-8", "replace"), digest_size=16).digest()
    digests = []
    for message in messages:
        digests.append(digest := continued_digest(digest, message))
    return digests


def continued_digest(digest: bytes, message: Message) -> bytes:
    """The digest of a conversation with ``message`` appended."""
    content = repr((message.speaker, message.text, message.calls, message.answers))
    return hashlib.blake2b(digest + content.encode("utf-8", "replace"), digest_size=16).digest()
