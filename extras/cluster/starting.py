"""Processes that are given their places and started, and others in the place of those that died."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor, Cluster
from coterie.extras.cluster.agreement import check_code, check_disk
from coterie.extras.cluster.processes import Machine
from coterie.extras.cluster.worker import About
from coterie.teams.backend import Died

_ATTEMPTS, _PAUSE_S = 8, 5.0
"""To start a process again: Ray takes half a minute to see that a node has gone."""


def give_places(
    cluster: Cluster | Machine, needs: Sequence[tuple[Actor, Mapping[str, float]]]
) -> None:
    """Give each process, none of which runs yet, a place with what it needs.

    Raises:
        UserError: they find no room.
    """
    cluster.reserve({actor.name: need for actor, need in needs})
    for number, (actor, need) in enumerate(needs):
        actor.options = cluster.place(number, need)


def start(
    actors: Sequence[Actor], folder: Path | None = None, *, most: int | None = None
) -> dict[str, About]:
    """Start these where this code runs, or others in their place, and have them load.

    Args:
        actors: whom.
        folder: the run's, which all see; None: nobody has to.
        most: how often each may die meanwhile, another one taking its place; None: never.

    Raises:
        Died: one of them has gone.
        UserError: a node has other code or another disk, or something cannot be loaded.
    """
    for actor in actors:
        actor.start()
    lost: dict[int, Died] = {}
    begun: dict[int, Any] = {}
    loaded: dict[int, dict[str, About]] = {}
    for number, actor in enumerate(actors):
        with _noting(lost, number, most):
            check_code(actor.processes)
            if folder is not None:
                check_disk(actor.processes, folder / "config.json")
            begun[number] = actor.begin("load")
    for number, load in begun.items():
        with _noting(lost, number, most):
            loaded[number] = actors[number].result(load)
            actors[number].locate()
    for number, error in lost.items():

        def begin(number: int = number) -> None:
            loaded[number] = start([actors[number]], folder)

        start_again(actors[number], error, most or 0, begin)
    about: dict[str, About] = {}
    for number in range(len(actors)):
        # The first of a base is the one that learns, where one does.
        about = loaded[number] | about
    return about


@contextmanager
def _noting(lost: dict[int, Died], number: int, most: int | None) -> Iterator[None]:
    """Who dies inside is noted, where another one may take its place."""
    try:
        yield
    except Died as error:
        if most is None:
            raise
        lost[number] = error


def start_again(
    actor: Actor, error: UserError, most: int, begin: Callable[[], Any] | None = None
) -> None:
    """Another process in the place of ``actor``.

    Args:
        actor: it answers no more.
        error: why.
        most: how often it may die.
        begin: starts another one, and brings it to where this one stood.

    Raises:
        UserError: ``error``, where it has died too often.
    """
    actor.restarts += 1
    if actor.restarts > most:
        raise error
    for left in reversed(range(_ATTEMPTS)):
        try:
            (begin or partial(start, [actor]))()
            return
        except Died:
            if not left:
                raise
        time.sleep(_PAUSE_S)
