"""Start processes, and check that they agree."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.worker import About, code_mark


def start(actors: Sequence[Actor], folder: Path | None = None) -> dict[str, About]:
    """Start actors, check their code and disk, and have them load their models.

    Args:
        actors: the actors to start.
        folder: the run directory, which all must see; None: skip this check.

    Raises:
        Died: an actor has died.
        UserError: a node has different code or another disk, or loading fails.
    """
    for actor in actors:
        actor.start()
    processes = [process for actor in actors for process in actor.processes]
    differs = "runs other code, or another torch, than this process: install the same version on"
    _check_alike(processes, code_mark(), f"{differs} every node", "code")
    if folder is not None:
        path = (folder / "config.json").resolve()
        differs = f"does not see {path.parent}: put --run-dir on a disk that all nodes share, or"
        differs += " say --cluster.checkpoints driver"
        _check_alike(processes, path.read_bytes(), differs, "seen", path)
    loads = [actor.begin("load") for actor in actors]
    about: dict[str, About] = {}
    for actor, load in zip(actors, loads):
        # The learner of a base comes first, if it has one.
        about = actor.result(load) | about
        actor.locate()
    return about


def _check_alike(
    processes: Sequence[Actor], here: Any, differs: str, verb: str, *arguments: Any
) -> None:
    """Refuse processes in which a call has another result than in this one; ``differs`` ends the
    message."""
    begun = [process.begin(verb, *arguments) for process in processes]
    for process, call in zip(processes, begun):
        if process.result(call) != here:
            raise UserError(f"{process.name} {differs}")
