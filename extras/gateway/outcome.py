"""The turns of each role in an ended episode: which are trained, and what is measured."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from coterie.extras.gateway.contexts import KINDS, Contexts, Node
from coterie.extras.gateway.messages import Answer, Message

SESSION_COUNTS = ("abandoned", "replayed", "refused")
TURN_COUNTS = ("twins", "undelivered", "malformed", "sampling_ignored")
RARE = (*KINDS, *TURN_COUNTS, "failed", "unpaid", *SESSION_COUNTS)
"""Measures that are usually 0."""


@dataclass(frozen=True)
class Played:
    """One turn of a role, for a function that says whether it is trained."""

    role: str
    turn: int
    """Counted from 0."""
    turns: int
    """Number of turns of the role."""
    messages: tuple[Message, ...]
    """Messages of the request."""
    answer: Answer


@dataclass(frozen=True)
class Record:
    """All turns of one role."""

    role: str
    contexts: Contexts
    undelivered: Collection[int]
    """Turns whose answers no client received."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The turns, in order."""
        return self.contexts.nodes

    @property
    def calls(self) -> int:
        """Number of turns."""
        return len(self.nodes)

    @cached_property
    def twins(self) -> set[int]:
        """Turns whose request was answered again, and continued only after the other answer."""
        return self.contexts.twins() - {*self.undelivered}

    def untrained(self, selects: Callable[[Played], bool] | None, *, last: bool) -> dict[int, str]:
        """Turn -> why it is not trained. Twins and undelivered turns never are.

        Args:
            selects: whether a further turn is trained; None: all are.
            last: train only the last of these.
        """
        turns = range(self.calls)
        why = dict.fromkeys(self.twins, "twin") | dict.fromkeys(self.undelivered, "undelivered")
        trained = [turn for turn in turns if turn not in why]
        if selects is not None:
            trained = [turn for turn in trained if selects(self._played(turn))]
        trained = trained[-1:] if last else trained
        return {turn: why.get(turn, "not chosen") for turn in turns if turn not in trained}

    def forest(self, untrained: Mapping[int, str]) -> list[list[Any]]:
        """(kind, parent, lost parent, why it is not trained) of each turn."""
        return [
            [
                node.context.kind,
                node.context.parent,
                node.context.lost_parent,
                untrained.get(node.turn, ""),
            ]
            for node in self.nodes
        ]

    def metrics(self) -> dict[str, float]:
        """Calls and the rows that they became; the shares of calls that continued a context and
        that reached the program; calls by kind (:data:`coterie.extras.gateway.contexts.KINDS`);
        twins, undelivered answers, malformed tool calls, and calls with an ignored sampling
        setting."""
        counts, calls, nodes = self.contexts.counts, self.calls, self.nodes
        parents = {node.context.parent for node in nodes}
        return {
            "calls": float(calls),
            "rows": float(sum(node.turn not in parents for node in nodes)),
            "bridged_share": sum(n.context.parent is not None for n in nodes) / max(calls, 1),
            "delivered_share": 1 - len(self.undelivered) / max(calls, 1),
            **{kind: float(counts[kind]) for kind in KINDS},
            "twins": float(len(self.twins)),
            "undelivered": float(len(self.undelivered)),
            **{name: float(counts[name]) for name in ("malformed", "sampling_ignored")},
        }

    def requested_sampling(self) -> list[dict[str, float]]:
        """Temperature and top-p in the request of each turn; empty if there were none."""
        requested = [dict(node.request.sampling) for node in self.nodes]
        return requested if any(requested) else []

    def texts(self) -> list[str]:
        """Requests and answers, alternating."""
        return [
            text
            for node in self.nodes
            for text in (conversation(node.request.messages), node.answer.text)
        ]

    def _played(self, turn: int) -> Played:
        node = self.nodes[turn]
        return Played(self.role, turn, self.calls, node.request.messages, node.answer)


def episode_counts(
    session_counts: Mapping[str, int], *, failed: bool, unpaid: bool
) -> dict[str, float]:
    """Counts of an episode, and of its requests without a turn; ``unpaid``: it failed because its
    program returned no valid reward."""
    return {
        "failed": float(failed),
        "unpaid": float(unpaid),
        **{name: float(session_counts.get(name, 0)) for name in SESSION_COUNTS},
    }


def conversation(messages: Sequence[Message]) -> str:
    """Messages as text; a single one without its speaker."""
    if len(messages) == 1:
        return messages[0].text
    return "\n".join(f"{message.speaker}: {message.text}" for message in messages)
