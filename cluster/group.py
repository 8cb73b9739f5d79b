"""Processes that learn as one: each has a shard of the same weights."""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from typing import Any

from coterie.cluster.actor import Actor, Died
from coterie.datatypes import UserError

_NOTICED_S = 20.0
"""Until it is known that a process has died, of which another has lost the connection."""


@dataclass(frozen=True)
class Group:
    """One process that learns, or several ranks of which each does what all are asked."""

    actors: Sequence[Actor]

    @property
    def name(self) -> str:
        """Of the first, whose answer counts."""
        return self.actors[0].name

    def begin(self, verb: str, *arguments: Any) -> list[Any]:
        """Have all run a method; the first of what is given stands for the answer."""
        return [actor.begin(verb, *arguments) for actor in self.actors]

    def result(self, begun: Sequence[Any]) -> Any:
        """What the method gave.

        Raises:
            Died: one of the processes or its node has gone; the others wait for nobody.
            UserError: see :meth:`coterie.cluster.actor.Actor.result`.
        """
        if len(self.actors) == 1:
            return self.actors[0].result(begun[0])
        waiting = [actor.future(one) for actor, one in zip(self.actors, begun)]
        if any(one.done() and one.exception() for one in wait(waiting, None, FIRST_EXCEPTION).done):
            self._explain(begun, waiting)
        return self.actors[0].result(begun[0])

    def ask(self, verb: str, *arguments: Any) -> Any:
        """:meth:`begin` and :meth:`result`."""
        return self.result(self.begin(verb, *arguments))

    def check(self) -> None:
        """Raises:
        Died: one of the processes has."""
        for actor in self.actors:
            actor.locate()

    def _explain(self, begun: Sequence[Any], waiting: Sequence[Future[Any]]) -> None:
        """Raise what went wrong first: who loses a connection blames the one that has died."""
        wait(waiting, _NOTICED_S)
        errors: list[UserError] = []
        for actor, one, future in zip(self.actors, begun, waiting):
            try:
                if future.done():
                    actor.result(one)
            except UserError as error:
                errors.append(error)
        died = (error for error in errors if isinstance(error, Died))
        raise next(died, errors[0])
