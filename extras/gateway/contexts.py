"""From messages to the exact tokens of a role, and back: sampled tokens are never encoded again.

If a request begins with a conversation that the role has had, its context is the ids of that
conversation, followed by the new messages. Any other request begins a context of its own.
"""

import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq

import numpy as np

from coterie.datatypes import TokenCodec
from coterie.datatypes.thinking import as_said, opened_by, split_thinking
from coterie.extras.gateway.messages import (
    Answer,
    Message,
    Request,
    ToolCall,
    continued_digest,
    prefix_digests,
)
from coterie.extras.gateway.rendering import Tokens, follow, render
from coterie.extras.gateway.tool_calls import read_calls

ROOTS = ("new", "subagent", "rewritten", "compacted", "tools_changed", "thinking_stripped")
"""Why a request begins a context of its own; :func:`why_new` tells them apart."""
KINDS = ("bridged", "branch", "repeated", *ROOTS)
"""Kinds of requests. ``bridged``: it continues a known conversation. ``branch``: so does it, but
another request continued that conversation before. ``repeated``: it was sent before."""


@dataclass(frozen=True)
class Context:
    """The context that a role answers in."""

    ids: Tokens
    kind: str
    """One of :data:`KINDS`."""
    request: bytes
    """Digest of the request."""
    initial: int
    """Number of messages in the request that began the context."""
    parent: int | None = None
    """The turn whose ids it continues verbatim; None if it is rendered as a whole."""
    lost_parent: int | None = None
    """The turn that a new context would have continued, had its messages not been edited."""


@dataclass(frozen=True)
class Node:
    """One turn of a role: a context with its answer."""

    turn: int
    request: Request
    answer: Answer
    context: Context
    ids: Tokens
    """Ids of the context and of the answer."""
    eos_id: int | None
    """The id with which the model itself ended its turn."""
    messages: tuple[Message, ...]
    """Messages of the request, and the answer as the last one."""


class Contexts:
    """All that one role has read and written in an episode."""

    def __init__(self, codec: TokenCodec, role: str = "") -> None:
        self.codec, self._role = codec, role
        self.counts: Counter[str] = Counter()
        """Requests by kind; ``malformed``: tool calls that could not be read, and stayed text;
        ``sampling_ignored``: requests with a sampling setting that was not applied."""
        self.nodes: list[Node] = []
        """By turn."""
        self._by_digest: dict[bytes, list[Node]] = {}
        """Digest of a conversation -> the nodes that end it: several, if answers are equal."""
        self._requests: set[bytes] = set()
        self._continued: set[int] = set()
        """Turns that are a parent."""

    @property
    def was_asked(self) -> bool:
        """Whether there was any request, with an answer or without."""
        return bool(self._requests)

    def open(self, request: Request) -> Context:
        """Create the context of a request."""
        context = self._context_of(request)
        self.counts[context.kind] += 1
        self._requests.add(context.request)
        if context.parent is not None:
            self._continued.add(context.parent)
        return context

    def close(self, request: Request, context: Context, sampled: Tokens, *, limit: int) -> Answer:
        """Add the role's next turn, and return the answer that its ids spell.

        Args:
            request: the request.
            context: its context.
            sampled: ids of the answer, shape (T,).
            limit: maximum number of ids that could be sampled.
        """
        turn = len(self.nodes)
        text = self.codec.decode(sampled)
        last = int(sampled[-1]) if len(sampled) else None
        eos_id = last if last in self.codec.eos_ids else None
        stops = [text.find(stop) for stop in request.stop if stop in text]
        text = text[: min(stops)] if stops else text
        text = as_said(opened_by(self.codec, context.ids), text)
        calls: tuple[ToolCall, ...] = ()
        if request.tools:
            text, calls, malformed = read_calls(
                text, lambda index: self._call_id(turn, index), one=request.one_call
            )
            self.counts["malformed"] += malformed
        answer = Answer(
            text,
            calls,
            cut=eos_id is None and not stops and len(sampled) >= limit,
            prompt_tokens=len(context.ids),
            completion_tokens=len(sampled),
            id=secrets.token_hex(12),
        )
        message = answer.message()
        ids = np.concatenate([context.ids, sampled])
        node = Node(turn, request, answer, context, ids, eos_id, (*request.messages, message))
        self._by_digest.setdefault(continued_digest(context.request, message), []).append(node)
        self.nodes.append(node)
        return answer

    def twins(self) -> set[int]:
        """Turns without a successor whose twin, an answer to the same request, has one."""
        siblings: dict[bytes, list[int]] = {}
        for node in self.nodes:
            siblings.setdefault(node.context.request, []).append(node.turn)
        return {
            turn
            for turns in siblings.values()
            if not self._continued.isdisjoint(turns)
            for turn in turns
            if turn not in self._continued
        }

    def _context_of(self, request: Request) -> Context:
        messages = request.messages
        digests = prefix_digests(messages, request.tools)
        digest = digests[-1]
        repeated = digest in self._requests
        for count in range(len(messages) - 1, 0, -1):
            same = self._by_digest.get(digests[count - 1])
            if messages[count - 1].speaker != "assistant" or same is None:
                continue
            if any(message.speaker == "assistant" for message in messages[count:]):
                break  # the role has not written this later answer
            # A program that asked twice may go on from both answers, although they are equal.
            new = (node for node in reversed(same) if node.turn not in self._continued)
            node = next(new, same[-1])
            kind = "branch" if node.turn in self._continued else "bridged"
            more = follow(self.codec, messages[count:], eos_id=node.eos_id)
            ids = np.concatenate([node.ids, more])
            kind = "repeated" if repeated else kind
            return Context(ids, kind, digest, node.context.initial, parent=node.turn)
        ids = render(self.codec, messages, request.tools)
        if repeated:
            return Context(ids, "repeated", digest, len(messages))
        kind, lost_parent = why_new(request, self.nodes)
        return Context(ids, kind, digest, len(messages), lost_parent=lost_parent)

    def _call_id(self, turn: int, index: int) -> str:
        # Unique in an episode, as programs show one role the calls of another, and the same in
        # every run. Some chat templates require nine letters and digits.
        whole = f"{self._role} {turn} {index}".encode()
        return hashlib.blake2b(whole, digest_size=5).hexdigest()[:9]


def why_new(request: Request, nodes: Sequence[Node]) -> tuple[str, int | None]:
    """Why a request continues none of ``nodes``, and which turn it would have continued.

    The first of these that holds:

    - ``tools_changed``: with the tools of a known conversation it would continue it.
    - ``thinking_stripped``: it would continue one if its answers still had their thoughts.
    - ``compacted``: the last known answer in it follows the same message as before, but nearer to
      the start; or other messages and no answer follow those that began a context.
    - ``rewritten``: it has a known answer, or the messages that began a context, and is none of
      the above.
    - ``subagent``: no known conversation has its system prompt.
    - ``new``: nothing of it is known, or the role has had no conversation.

    A history that a summary replaces under the same system prompt, with nothing kept verbatim,
    cannot be told from a new conversation, and is ``new``.
    """
    for kind, alike, same_tools in (
        ("tools_changed", eq, False),
        ("thinking_stripped", _same_but_thinking, True),
    ):
        for node in sorted(nodes, key=lambda node: -len(node.messages)):
            fits = (node.request.tools == request.tools) is same_tools
            if fits and _continues(request.messages, node.messages, alike):
                return kind, node.turn
    if edited := _edited(request.messages, nodes):
        return edited
    prompts = {_system_prompt(node.messages) for node in nodes}
    return (
        "subagent" if nodes and _system_prompt(request.messages) not in prompts else "new"
    ), None


def _edited(messages: tuple[Message, ...], nodes: Sequence[Node]) -> tuple[str, int | None] | None:
    for index in range(len(messages) - 1, 0, -1):
        if messages[index].speaker != "assistant":
            continue
        exchange = messages[index - 1 : index + 1]
        if same := [node for node in nodes if node.messages[-2:] == exchange]:
            nearer = all(index < len(node.messages) - 1 for node in same)
            return ("compacted" if nearer else "rewritten"), same[-1].turn
    turns = {node.messages[-1]: node.turn for node in nodes}
    for message in reversed(messages):
        if message in turns:
            return "rewritten", turns[message]
    for node in reversed(nodes):
        initial = node.context.initial
        if messages[:initial] == node.messages[:initial]:
            answered = any(message.speaker == "assistant" for message in messages[initial:])
            return ("rewritten" if answered else "compacted"), node.turn
    return None


def _continues(
    messages: tuple[Message, ...],
    known: tuple[Message, ...],
    alike: Callable[[Message, Message], bool],
) -> bool:
    """Whether ``messages`` is ``known`` followed by messages that are not an assistant's."""
    count = len(known)
    return (
        len(messages) > count
        and all(map(alike, messages, known))
        and not any(message.speaker == "assistant" for message in messages[count:])
    )


def _same_but_thinking(message: Message, known: Message) -> bool:
    if message == known:
        return True
    if not message.speaker == known.speaker == "assistant" or message.calls != known.calls:
        return False
    thinking, rest = split_thinking(known.text)
    return bool(thinking) and rest is not None and message.text.strip() == rest


def _system_prompt(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(takewhile(lambda message: message.speaker == "system", messages))
