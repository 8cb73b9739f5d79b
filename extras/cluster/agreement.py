"""Check that all processes of a run have the same code and write to the same disk."""

from collections.abc import Sequence
from pathlib import Path

from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.worker import code_mark


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
