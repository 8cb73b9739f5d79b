"""How a request stands to the conversations that a role has had."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from coterie.datatypes.thinking import split_thinking
from coterie.extras.gateway.messages import Message, Tool

ROOTS = ("new", "subagent", "rewritten", "compacted", "tools_changed", "thinking_stripped")
"""Why a request begins a context of its own; :func:`why_new` tells them apart."""
KINDS = ("bridged", "branch", "repeated", *ROOTS)
"""What a request is. ``bridged``: it goes on where a known conversation ended. ``branch``: it does,
and another request went on there before. ``repeated``: it was sent before."""


@dataclass(frozen=True)
class Conversation:
    """What a role was asked and answered; its own last answer ends it."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    begun: int
    """How many messages it began with: those of the request that began its context."""
    turn: int
    """Which turn of the role ended it."""


def why_new(
    messages: Sequence[Message], tools: Sequence[Tool], known: Sequence[Conversation]
) -> tuple[str, int | None]:
    """Why a request continues no known conversation, and after which turn it would have.

    The first of these that holds:

    - ``tools_changed``: under its own tools it would continue a known conversation.
    - ``thinking_stripped``: it would if the answers in it had what stood before ``</think>``.
    - ``compacted``: the last known answer in it stands behind the same message as ever, but nearer
      to the start; or the messages that began a context are followed by others and no answer.
    - ``rewritten``: it has a known answer, or the messages that began a context, and is none of
      the above.
    - ``subagent``: it has another system prompt than all known conversations.
    - ``new``: nothing of it is known, or the role has had no conversation.

    A history that is replaced by a summary under the same system prompt, with nothing kept
    verbatim, cannot be told from a new conversation, and is ``new``.
    """
    shown = tuple(messages)
    same: Callable[[Message, Message], bool] = lambda left, right: left == right  # noqa: E731
    for kind, alike, same_tools in (
        ("tools_changed", same, False),
        ("thinking_stripped", _same_but_thinking, True),
    ):
        for past in sorted(known, key=lambda past: -len(past.messages)):
            fits = (past.tools == tuple(tools)) is same_tools
            if fits and _continues(shown, past.messages, alike):
                return kind, past.turn
    if kind := _edited(shown, known):
        return kind
    prompts = {_system_prompt(past.messages) for past in known}
    return ("subagent" if known and _system_prompt(shown) not in prompts else "new"), None


def _edited(
    shown: tuple[Message, ...], known: Sequence[Conversation]
) -> tuple[str, int | None] | None:
    for place in range(len(shown) - 1, 0, -1):
        if shown[place].speaker != "assistant":
            continue
        asked_and_said = shown[place - 1 : place + 1]
        if kept := [past for past in known if past.messages[-2:] == asked_and_said]:
            nearer = all(place < len(past.messages) - 1 for past in kept)
            return ("compacted" if nearer else "rewritten"), kept[-1].turn
    said = {past.messages[-1]: past.turn for past in known}
    for message in reversed(shown):
        if message in said:
            return "rewritten", said[message]
    for past in reversed(known):
        if shown[: past.begun] == past.messages[: past.begun]:
            answered = any(message.speaker == "assistant" for message in shown[past.begun :])
            return ("rewritten" if answered else "compacted"), past.turn
    return None


def _continues(
    shown: tuple[Message, ...],
    past: tuple[Message, ...],
    alike: Callable[[Message, Message], bool],
) -> bool:
    """Whether ``shown`` is ``past`` with messages behind it, none of them an assistant's."""
    count = len(past)
    return (
        len(shown) > count
        and all(map(alike, shown, past))
        and not any(message.speaker == "assistant" for message in shown[count:])
    )


def _same_but_thinking(shown: Message, past: Message) -> bool:
    if shown == past:
        return True
    if not shown.speaker == past.speaker == "assistant" or shown.calls != past.calls:
        return False
    thinking, said = split_thinking(past.text)
    return bool(thinking) and said is not None and shown.text.strip() == said


def _system_prompt(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(takewhile(lambda message: message.speaker == "system", messages))
