"""From messages to the exact tokens of a role, and back: what was sampled is never encoded again.

Where a request begins with a conversation that the role has had, its context is the earlier ids,
followed by the new messages. Any other request begins a context of its own.
"""

import hashlib
import json
import re
import secrets
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.datatypes import TokenCodec
from coterie.datatypes.thinking import CLOSING, OPENING, as_said, leading_tag, opened_by
from coterie.extras.gateway.forks import Conversation, why_new
from coterie.extras.gateway.messages import (
    Answer,
    Request,
    ToolCall,
    continued_digest,
    prefix_digests,
)
from coterie.extras.gateway.rendering import Tokens, follow, render

_CALL_END = re.compile(r"\s*(?:</tool_call>|(?=<tool_call>)|\Z)")
"""A model that ends its turn behind a call, or goes on with the next one, may not close it."""
_CALL_KEYS = frozenset({"name", "arguments", "parameters", "id", "type"})


def _no_number(word: str) -> Any:
    raise ValueError(word)


_JSON = json.JSONDecoder(parse_constant=_no_number)  # NaN and Infinity are no JSON


@dataclass(frozen=True)
class Opened:
    """The context in which a role is asked."""

    ids: Tokens
    kind: str
    """How it stands to what the role knows: one of :data:`coterie.extras.gateway.forks.KINDS`."""
    request: bytes
    """Names the request."""
    begun: int
    """How many messages it began with."""
    behind: int | None = None
    """The turn whose ids it continues verbatim; None where it is rendered as a whole."""
    origin: int | None = None
    """The turn that it would have continued, of a context that does not."""


@dataclass(frozen=True)
class Node:
    """A context with its answer."""

    request: Request
    answer: Answer
    opened: Opened
    ids: Tokens
    mark: int | None
    """The id with which the model itself ended its turn."""
    past: Conversation


class Contexts:
    """All that one role has read and written in an episode."""

    def __init__(self, codec: TokenCodec, role: str = "") -> None:
        self.codec, self._role = codec, role
        self.counts: Counter[str] = Counter()
        """Requests by their kind. And ``malformed``: calls of tools that could not be read, and
        stayed text; ``sampling_ignored``: requests with a setting of sampling that was ignored."""
        self.nodes: list[Node] = []
        """In the order of their turns."""
        self._known: dict[bytes, Node] = {}
        """By the conversation that they end."""
        self._asked: set[bytes] = set()
        """Names of requests."""
        self._continued: set[int] = set()
        """Turns that a request went on after."""

    @property
    def was_asked(self) -> bool:
        """Whether the role was asked anything, answered or not."""
        return bool(self._asked)

    def open(self, request: Request) -> Opened:
        """The context that the role is shown."""
        opened = self._open(request)
        self.counts[opened.kind] += 1
        self._asked.add(opened.request)
        if opened.behind is not None:
            self._continued.add(opened.behind)
        return opened

    def close(self, request: Request, opened: Opened, sampled: Tokens, *, limit: int) -> Answer:
        """What ``sampled`` says; it is the role's next turn, and known from here on.

        Args:
            request: what was asked.
            opened: the context that it was asked in.
            sampled: ids.
            limit: most ids that there could be.
        """
        turn = len(self.nodes)
        text = self.codec.decode(sampled)
        last = int(sampled[-1]) if len(sampled) else None
        mark = last if last in self.codec.eos_ids else None
        stops = [text.find(stop) for stop in request.stop if stop in text]
        said = text[: min(stops)] if stops else text
        said = as_said(opened_by(self.codec, opened.ids), said)
        calls: tuple[ToolCall, ...] = ()
        if request.tools:
            said, calls = self._calls(said, turn, one=request.one_call)
        answer = Answer(
            said,
            calls,
            cut=mark is None and not stops and len(sampled) >= limit,
            prompt_tokens=len(opened.ids),
            completion_tokens=len(sampled),
            id=secrets.token_hex(12),
        )
        said_back = answer.message()
        messages = (*request.messages, said_back)
        past = Conversation(messages, request.tools, opened.begun, turn)
        node = Node(request, answer, opened, np.concatenate([opened.ids, sampled]), mark, past)
        self._known[continued_digest(opened.request, said_back)] = node
        self.nodes.append(node)
        return answer

    def twins(self) -> set[int]:
        """Turns that nobody went on with while a twin of theirs, an answer to the same request,
        was gone on with."""
        siblings: dict[bytes, list[int]] = {}
        for node in self.nodes:
            siblings.setdefault(node.opened.request, []).append(node.past.turn)
        return {
            turn
            for turns in siblings.values()
            if not self._continued.isdisjoint(turns)
            for turn in turns
            if turn not in self._continued
        }

    def _open(self, request: Request) -> Opened:
        digests = prefix_digests(request.messages, request.tools)
        messages, name = request.messages, digests[-1]
        repeated = name in self._asked
        for count in range(len(messages) - 1, 0, -1):
            node = self._known.get(digests[count - 1])
            if messages[count - 1].speaker != "assistant" or node is None:
                continue
            if any(message.speaker == "assistant" for message in messages[count:]):
                break
            turn = node.past.turn
            kind = "branch" if turn in self._continued else "bridged"
            more = follow(self.codec, messages[count:], mark=node.mark)
            ids = np.concatenate([node.ids, more])
            return Opened(ids, "repeated" if repeated else kind, name, node.past.begun, turn)
        ids = render(self.codec, messages, request.tools)
        if repeated:
            return Opened(ids, "repeated", name, len(messages))
        past = [node.past for node in self.nodes]
        kind, origin = why_new(messages, request.tools, past)
        return Opened(ids, kind, name, len(messages), origin=origin)

    def _calls(self, text: str, turn: int, *, one: bool) -> tuple[str, tuple[ToolCall, ...]]:
        """(the text without them, calls); what cannot be read as one stays text, and so does what
        stands in a thought.

        Args:
            text: what was sampled, behind the thought that the prompt opened.
            turn: in which.
            one: whether it ends behind the first call.
        """
        pieces: list[str] = []
        calls: list[ToolCall] = []
        begin = place = malformed = 0
        tag = leading_tag(text)
        marks, thinking = _marks(tag), bool(tag)
        while mark := marks.search(text, place):
            place = mark.end()
            if mark["opens"]:
                thinking = True
            elif mark["closes"]:
                # All before it was a thought, whether or not it was opened.
                thinking, begin, malformed = False, 0, 0
                pieces, calls = [], []
            elif not thinking:
                if (read := _read_call(text, place)) is None:
                    malformed += 1
                    continue
                name, arguments, place = read
                calls.append(ToolCall(self._call_id(turn, len(calls)), name, arguments))
                pieces.append(text[begin : mark.start()])
                begin = place
                if one:
                    text = text[:place]
        self.counts["malformed"] += malformed
        left = "".join([*pieces, text[begin:]])
        return (left.strip() if calls else left), tuple(calls)

    def _call_id(self, turn: int, place: int) -> str:
        """Unique in an episode, as programs show one role what another called; the same in every
        run; nine letters and digits, as some chat templates ask for."""
        whole = f"{self._role} {turn} {place}".encode()
        return hashlib.blake2b(whole, digest_size=5).hexdigest()[:9]


def _marks(tag: str) -> re.Pattern[str]:
    """What the reading of calls depends on, in a text that begins with ``tag``."""
    closing = rf"{CLOSING}|</{tag}>" if tag else CLOSING
    return re.compile(
        rf"(?P<opens>(?i:{OPENING}))|(?P<closes>(?i:{closing}))|<tool_call>\s*(?=\{{)"
    )


def _read_call(text: str, place: int) -> tuple[str, str, int] | None:
    """(name, arguments, where the call ends) of a call whose JSON begins at ``place``; None if it
    is none."""
    try:
        call, place = _JSON.raw_decode(text, place)
        end = _CALL_END.match(text, place)
        name, given = call["name"], _arguments(call)
        if not (isinstance(name, str) and name and isinstance(given, dict) and end):
            return None
        arguments = json.dumps(given, sort_keys=True, ensure_ascii=False, allow_nan=False)
        f"{name}{arguments}".encode()  # half of a surrogate pair can be written, and is no text
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return name, arguments, end.end()


def _arguments(call: dict[str, Any]) -> Any:
    """What a call gives its tool: an object, where it can be read.

    Some models name it ``parameters``, write it as text, or leave it empty where a tool needs
    nothing. A call with other keys has its arguments beside its name: it cannot be read.
    """
    if not _CALL_KEYS.issuperset(call) or {"arguments", "parameters"} <= call.keys():
        return None
    given = call.get("arguments", call.get("parameters"))
    if isinstance(given, str):
        given = _JSON.decode(given) if given.strip() else None
    return {} if given is None else given
