"""Start processes, and check that they agree."""

from collections.abc import Sequence
from pathlib import Path

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
    check_code(processes)
    if folder is not None:
        check_disk(processes, folder / "config.json")
    loads = [actor.begin("load") for actor in actors]
    about: dict[str, About] = {}
    for actor, load in zip(actors, loads):
        # The learner of a base comes first, if it has one.
        about = actor.result(load) | about
        actor.locate()
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
