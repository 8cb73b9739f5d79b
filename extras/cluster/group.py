"""A learner of several processes, each with a shard of the same weights."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from typing import Any

from coterie.agents.team.backend import Died
from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.worker import Rank

NOTICED_S = 20.0
"""Seconds until a death is known after another process has lost its connection."""


@dataclass(eq=False)
class Group(Actor):
    """Ranks that all run each call; the result of the first rank counts."""

    ranks: Sequence[Actor] = ()
    meeting: Callable[[], str] = str
    """Returns a new meeting point for the ranks at every call."""

    @property
    def processes(self) -> Sequence[Actor]:
        """The ranks."""
        return self.ranks

    def start(self) -> None:
        """Start all ranks without waiting for them; replace those that run."""
        meeting = self.meeting()
        for number, rank in enumerate(self.ranks):
            rank.more = {**rank.more, "rank": Rank(number, len(self.ranks), meeting)}
            rank.start()
        self.handle = self.ranks[0].handle

    def begin(self, verb: str, *arguments: Any) -> Sequence[Any]:
        """Start a method call on all ranks; return their calls."""
        return [rank.begin(verb, *arguments) for rank in self.ranks]

    def reference(self, begun: Sequence[Any]) -> Any:
        """See :meth:`coterie.extras.cluster.actor.Actor.reference`."""
        return begun[0]

    def result(self, begun: Sequence[Any]) -> Any:
        """Wait for a call and return the result of the first rank.

        Raises:
            Died: a rank or its node has died; no other rank waits for it.
            UserError: see :meth:`coterie.extras.cluster.actor.Actor.result`.
        """
        waiting = [rank.future(call) for rank, call in zip(self.ranks, begun)]
        if any(
            future.done() and future.exception()
            for future in wait(waiting, None, FIRST_EXCEPTION).done
        ):
            self._explain(begun, waiting)
        return self.ranks[0].result(begun[0])

    def locate(self) -> None:
        """Record the node, address and device of each rank.

        Raises:
            Died: a rank has died; the others may still wait for it.
        """
        self.ask("where")
        for rank in self.ranks:
            rank.locate()

    def stop(self) -> None:
        """End all ranks."""
        for rank in self.ranks:
            rank.stop()
        self.handle = None

    def _explain(self, begun: Sequence[Any], waiting: Sequence[Future[Any]]) -> None:
        """Raise the first cause: a death comes before the connection errors that it causes."""
        wait(waiting, NOTICED_S)
        errors: list[UserError] = []
        for actor, call, future in zip(self.ranks, begun, waiting):
            try:
                if future.done():
                    actor.result(call)
            except UserError as error:
                errors.append(error)
        died = (error for error in errors if isinstance(error, Died))
        raise next(died, errors[0])
