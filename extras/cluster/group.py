"""Processes that learn as one: each has a shard of the same weights."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from typing import Any

from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.worker import Rank
from coterie.teams.backend import Died

NOTICED_S = 20.0
"""Until it is known that a process has died, of which another has lost the connection."""


@dataclass(eq=False)
class Group(Actor):
    """Ranks, each of which does what all are asked; the first one's answer is theirs."""

    ranks: Sequence[Actor] = ()
    meeting: Callable[[], str] = str
    """Names a place where ranks find each other, another one at every call."""

    @property
    def processes(self) -> Sequence[Actor]:
        """The ranks."""
        return self.ranks

    def start(self) -> None:
        """Begin to start all of them, or others in their place."""
        meeting = self.meeting()
        for number, rank in enumerate(self.ranks):
            rank.more = {**rank.more, "rank": Rank(number, len(self.ranks), meeting)}
            rank.start()
        self.handle = self.ranks[0].handle

    def begin(self, verb: str, *arguments: Any) -> Sequence[Any]:
        """Have all run a method; what is given is what each has begun."""
        return [rank.begin(verb, *arguments) for rank in self.ranks]

    def reference(self, begun: Sequence[Any]) -> Any:
        """See :meth:`coterie.extras.cluster.actor.Actor.reference`."""
        return begun[0]

    def result(self, begun: Sequence[Any]) -> Any:
        """What the method gave.

        Raises:
            Died: one of the processes or its node has gone; the others wait for nobody.
            UserError: see :meth:`coterie.extras.cluster.actor.Actor.result`.
        """
        waiting = [rank.future(one) for rank, one in zip(self.ranks, begun)]
        if any(one.done() and one.exception() for one in wait(waiting, None, FIRST_EXCEPTION).done):
            self._explain(begun, waiting)
        return self.ranks[0].result(begun[0])

    def locate(self) -> None:
        """Note where they are.

        Raises:
            Died: one of them is nowhere; the others may wait for it.
        """
        self.ask("where")
        for rank in self.ranks:
            rank.locate()

    def stop(self) -> None:
        """End all of them."""
        for rank in self.ranks:
            rank.stop()
        self.handle = None

    def _explain(self, begun: Sequence[Any], waiting: Sequence[Future[Any]]) -> None:
        """Raise what went wrong first: who loses a connection blames the one that has died."""
        wait(waiting, NOTICED_S)
        errors: list[UserError] = []
        for actor, one, future in zip(self.ranks, begun, waiting):
            try:
                if future.done():
                    actor.result(one)
            except UserError as error:
                errors.append(error)
        died = (error for error in errors if isinstance(error, Died))
        raise next(died, errors[0])
