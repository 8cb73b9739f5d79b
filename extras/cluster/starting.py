"""Give processes their places, start them, check that they agree, and replace those that die."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coterie.agents.team.backend import Died
from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor, Cluster
from coterie.extras.cluster.processes import Machine
from coterie.extras.cluster.worker import About, code_mark

_ATTEMPTS, _PAUSE_S = 8, 5.0
"""Attempts to restart a process, and seconds between them: Ray needs half a minute to notice
that a node is gone."""


def give_places(
    cluster: Cluster | Machine, needs: Sequence[tuple[Actor, Mapping[str, float]]]
) -> None:
    """Give each process a place that meets its needs, before any of them runs.

    Raises:
        UserError: there is not enough room.
    """
    cluster.reserve({actor.name: need for actor, need in needs})
    for number, (actor, need) in enumerate(needs):
        actor.options = cluster.place(number, need)


def start(
    actors: Sequence[Actor], folder: Path | None = None, *, most: int | None = None
) -> dict[str, About]:
    """Start actors, check their code and disk, and have them load their models.

    Args:
        actors: the actors to start.
        folder: the run directory, which all must see; None: skip this check.
        most: how often each may die and be replaced meanwhile; None: never.

    Raises:
        Died: an actor has died.
        UserError: a node has different code or another disk, or loading fails.
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
        # The learner of a base comes first, if it has one.
        about = loaded[number] | about
    return about


def check_code(processes: Sequence[Actor]) -> None:
    """Refuse processes whose code differs from the code of this one.

    Raises:
        UserError: a process has different code; the message names it.
        Died: a process has died.
    """
    mark = code_mark()
    for process, begun in [(member, member.begin("code")) for member in processes]:
        if process.result(begun) != mark:
            raise UserError(
                f"{process.name} runs other code, or another torch, than this process: install "
                "the same version on every node"
            )


def check_disk(processes: Sequence[Actor], file: Path) -> None:
    """Refuse processes that do not read the same content from ``file`` as this one.

    Raises:
        UserError: a process reads something else; the message names it.
        Died: a process has died.
    """
    known, path = file.read_bytes(), file.resolve()
    for process, begun in [(member, member.begin("seen", path)) for member in processes]:
        if process.result(begun) != known:
            raise UserError(
                f"{process.name} does not see {path.parent}: put --run-dir on a disk that all "
                "nodes share, or say --cluster.checkpoints driver"
            )


@contextmanager
def _noting(lost: dict[int, Died], number: int, most: int | None) -> Iterator[None]:
    """Record a death in ``lost`` if the actor may be replaced."""
    try:
        yield
    except Died as error:
        if most is None:
            raise
        lost[number] = error


def start_again(actor: Actor, error: UserError, most: int, begin: Callable[[], object]) -> None:
    """Replace ``actor`` with a new process.

    Args:
        actor: the actor that no longer answers.
        error: the reason.
        most: how often it may die.
        begin: starts the new process and restores its state.

    Raises:
        UserError: ``error``, if the actor has died too often.
    """
    actor.restarts += 1
    if actor.restarts > most:
        raise error
    for left in reversed(range(_ATTEMPTS)):
        try:
            begin()
            return
        except Died:
            if not left:
                raise
        time.sleep(_PAUSE_S)
