"""What a program asks and is answered, whatever wire it speaks: messages in one canonical form."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Speaker = Literal["system", "user", "assistant", "tool"]


class Refused(Exception):
    """A request that is not answered: a status of HTTP and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@dataclass(frozen=True)
class ToolCall:
    """A call that an assistant makes."""

    id: str
    name: str
    arguments: str
    """A JSON object, its keys sorted."""


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    speaker: Speaker
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant."""
    answers: str = ""
    """Of a tool: the id of the call that it answers."""


@dataclass(frozen=True)
class Tool:
    """What a program lets an assistant call."""

    name: str
    description: str
    parameters: str
    """A JSON schema, its keys sorted."""


@dataclass(frozen=True)
class Request:
    """One call of a program."""

    messages: tuple[Message, ...]
    model: str = ""
    tools: tuple[Tool, ...] = ()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    sampling: Mapping[str, float] = field(default_factory=dict)
    """The ``temperature`` and ``top_p`` that it names; in training the run's hold in their
    place."""
    ignored: bool = False
    """Whether it names a setting of sampling that is never obeyed."""
    one_call: bool = False
    """Whether at most one tool may be called."""


@dataclass(frozen=True)
class Answer:
    """What a role answered."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False
    """Whether a limit of tokens ended it."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    id: str = field(default="", compare=False)
    """Names it on the wire."""

    def message(self) -> Message:
        """It, as the program will send it back."""
        return Message("assistant", self.text, self.calls)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys; text that is JSON is read first, and kept as it is if it is none."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def prefix_digests(messages: Sequence[Message], tools: Sequence[Tool]) -> list[bytes]:
    """A name for each start of a conversation: of its first message, its first two, ...; the tools
    belong to all of them."""
    name = hashlib.blake2b(repr(tuple(tools)).encode("utf-8", "replace"), digest_size=16).digest()
    names = []
    for message in messages:
        names.append(name := continued_digest(name, message))
    return names


def continued_digest(name: bytes, message: Message) -> bytes:
    """The name of the conversation that goes on with ``message`` where that of ``name`` ends."""
    said = repr((message.speaker, message.text, message.calls, message.answers))
    return hashlib.blake2b(name + said.encode("utf-8", "replace"), digest_size=16).digest()
