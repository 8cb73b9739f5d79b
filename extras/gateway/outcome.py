"""What an ended episode pays each role, which of its turns are learned, and what is measured."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from coterie.envs.contract import why_no_reward
from coterie.extras.gateway.contexts import Contexts, Node
from coterie.extras.gateway.forks import KINDS
from coterie.extras.gateway.messages import Answer, Message
from coterie.extras.gateway.results import Unread

OF_SESSIONS = ("abandoned", "replayed", "refused")
OF_TURNS = ("twins", "undelivered", "malformed", "sampling_ignored")
COUNTS = (*KINDS, *OF_TURNS, "failed", "unpaid", *OF_SESSIONS)
"""What is counted, and seldom happens."""


class NoReward(Exception):
    """Why what a program gave pays nobody: one sentence."""


@dataclass(frozen=True)
class Played:
    """One turn of a role, for a function that says whether it is learned."""

    role: str
    turn: int
    """Counted from 0."""
    turns: int
    """How many the role had."""
    messages: tuple[Message, ...]
    """What it was asked."""
    answer: Answer


@dataclass(frozen=True)
class Record:
    """What one role did."""

    role: str
    contexts: Contexts
    undelivered: Collection[int]
    """Turns whose answers reached nobody."""

    @property
    def nodes(self) -> Sequence[Node]:
        """What it was asked, and answered, by turn."""
        return self.contexts.nodes

    @property
    def calls(self) -> int:
        """How many turns it had."""
        return len(self.nodes)

    @cached_property
    def twins(self) -> set[int]:
        """Turns that were answered again; the program went on with the other answer alone."""
        return self.contexts.twins() - {*self.undelivered}

    def left_out(self, chosen: Callable[[Played], bool] | None, *, last: bool) -> dict[int, str]:
        """Turns that are not learned, and why. What reached nobody is not, and no twin.

        Args:
            chosen: says of each other turn whether it is learned.
            last: whether only the last of those is.
        """
        count = self.calls
        why = dict.fromkeys(self.twins, "twin") | dict.fromkeys(self.undelivered, "undelivered")
        kept = [turn for turn in range(count) if turn not in why]
        if chosen is not None:
            kept = [turn for turn in kept if chosen(self._played(turn))]
        kept = kept[-1:] if last else kept
        return {t: why.get(t, "not chosen") for t in range(count) if t not in kept}

    def forest(self, left_out: Mapping[int, str]) -> list[list[Any]]:
        """Of each turn: its kind, the turn that it goes on after, the turn that it would have gone
        on after, and why it is not learned."""
        return [
            [node.opened.kind, node.opened.behind, node.opened.origin, left_out.get(turn, "")]
            for turn, node in enumerate(self.nodes)
        ]

    def measured(self) -> dict[str, float]:
        """Calls and the rows that they became; the shares of calls that went on with a context and
        that reached the program; calls by their kind (:data:`coterie.extras.gateway.forks.KINDS`);
        twins, undelivered answers, malformed calls of tools, and calls with a setting of sampling
        that was ignored."""
        counts, calls, nodes = self.contexts.counts, self.calls, self.nodes
        continued = {node.opened.behind for node in nodes}
        return {
            "calls": float(calls),
            "rows": float(sum(node.past.turn not in continued for node in nodes)),
            "bridged_share": sum(n.opened.behind is not None for n in nodes) / max(calls, 1),
            "delivered_share": 1 - len(self.undelivered) / max(calls, 1),
            **{kind: float(counts[kind]) for kind in KINDS},
            "twins": float(len(self.twins)),
            "undelivered": float(len(self.undelivered)),
            **{n: float(counts[n]) for n in ("malformed", "sampling_ignored")},
        }

    def sampling(self) -> list[dict[str, float]]:
        """The temperature and top-p that each turn's request named; empty where none did."""
        named = [dict(node.request.sampling) for node in self.nodes]
        return named if any(named) else []

    def texts(self) -> list[str]:
        """What it was asked and answered, in turn."""
        return [
            text
            for node in self.nodes
            for text in (conversation(node.request.messages), node.answer.text)
        ]

    def _played(self, turn: int) -> Played:
        node = self.nodes[turn]
        return Played(self.role, turn, self.calls, node.request.messages, node.answer)


def counted(of_session: Mapping[str, int], *, failed: bool, unpaid: bool) -> dict[str, float]:
    """What became of an episode and of its requests that have no turn; ``unpaid``: it failed
    because of what its program gave."""
    return {
        "failed": float(failed),
        "unpaid": float(unpaid),
        **{name: float(of_session.get(name, 0)) for name in OF_SESSIONS},
    }


def reward_terms(
    title: str,
    result: Any,
    records: Mapping[str, Record],
    correct: Callable[[str], bool],
) -> dict[str, dict[str, float]]:
    """Role -> its reward terms.

    Args:
        title: what messages begin with.
        result: what the program gave: text, a number, or by role a number or a list of numbers.
        records: role -> what it did.
        correct: whether a text answers the problem.

    Raises:
        NoReward: it is nothing of these.
    """
    if isinstance(result, str):
        right = float(correct(result))
        return {role: {"correct": right} for role in records}
    return {
        role: {"program": sum(paid, 0.0)} for role, paid in _paid(title, result, records).items()
    }


def turn_rewards(title: str, result: Any, records: Mapping[str, Record]) -> dict[str, list[float]]:
    """Role -> what each of its turns was paid, of roles that a list pays. A turn whose answer
    reached nobody was paid nothing.

    Raises:
        NoReward: the result is none of those that a program may give.
    """
    if not isinstance(result, Mapping):
        return {}
    rewards: dict[str, list[float]] = {}
    for role, paid in _paid(title, result, records).items():
        if isinstance(result[role], list | tuple):
            record, left = records[role], iter(paid)
            turns = range(record.calls)
            rewards[role] = [0.0 if t in record.undelivered else next(left) for t in turns]
    return rewards


def _paid(title: str, result: Any, records: Mapping[str, Record]) -> dict[str, list[float]]:
    """Role -> the numbers that it was paid."""
    by_role: Any = dict.fromkeys(records, result) if isinstance(result, float) else result
    if not isinstance(by_role, Mapping) or not set(by_role) <= set(records):
        raise NoReward(
            f"{title} gave {Unread(result)!r}; it must give a text to grade, a number, or a "
            f"dictionary by role ({', '.join(records)}) of numbers, or of lists with a number for "
            "each answer"
        )
    paid: dict[str, list[float]] = {}
    for role, rewards in by_role.items():
        record, each = records[role], isinstance(rewards, list | tuple)
        answers = record.calls - len(record.undelivered)
        if each and len(rewards) != answers:
            raise NoReward(
                f"{title} gave {role} {len(rewards)} rewards, and it had {answers} answers; give a "
                "number for each answer, or one number"
            )
        for reward in rewards if each else [rewards]:
            if why := why_no_reward(role, reward):
                raise NoReward(f"{title}: {why}")
        paid[role] = [float(reward) for reward in (rewards if each else [rewards])]
    return paid


def conversation(messages: Sequence[Message]) -> str:
    """Messages for those who read text: a single one as it is."""
    if len(messages) == 1:
        return messages[0].text
    return "\n".join(f"{message.speaker}: {message.text}" for message in messages)
