"""Processes that learn as one: each has a shard of the same weights."""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from typing import Any

from coterie.cluster.actor import Actor, Died
from coterie.datatypes import UserError

_NOTICED_S = 20.0
"""Until it is known that a process has died, of which another has lost the connection."""


@dataclass
class Group(Actor):
    """Ranks, each of which does what all are asked, under the name of the first; its answer is
    theirs."""

    ranks: Sequence[Actor] = ()
    _begun: Sequence[Any] = ()
    """What was begun last, by rank."""

    def begin(self, verb: str, *arguments: Any) -> Any:
        """Have all run a method; what is given is the first one's."""
        self._begun = [rank.begin(verb, *arguments) for rank in self.ranks]
        return self._begun[0]

    def result(self, begun: Any) -> Any:
        """What the method that was begun last gave.

        Raises:
            Died: one of the processes or its node has gone; the others wait for nobody.
            UserError: see :meth:`coterie.cluster.actor.Actor.result`.
        """
        waiting = [rank.future(one) for rank, one in zip(self.ranks, self._begun)]
        if any(one.done() and one.exception() for one in wait(waiting, None, FIRST_EXCEPTION).done):
            self._explain(waiting)
        return self.ranks[0].result(begun)

    def locate(self) -> None:
        """Note where they are.

        Raises:
            Died: one of them has gone.
        """
        for rank in self.ranks:
            rank.locate()

    def _explain(self, waiting: Sequence[Future[Any]]) -> None:
        """Raise what went wrong first: who loses a connection blames the one that has died."""
        wait(waiting, _NOTICED_S)
        errors: list[UserError] = []
        for actor, one, future in zip(self.ranks, self._begun, waiting):
            try:
                if future.done():
                    actor.result(one)
            except UserError as error:
                errors.append(error)
        died = (error for error in errors if isinstance(error, Died))
        raise next(died, errors[0])
