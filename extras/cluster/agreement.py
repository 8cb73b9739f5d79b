"""What the processes of a run must have in common: their code, and the disk that they write to."""

from collections.abc import Sequence
from pathlib import Path

from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.worker import code_mark


def check_code(processes: Sequence[Actor]) -> None:
    """Refuse processes that run other code than this one.

    Raises:
        UserError: it names one of them.
        Died: one of them has gone.
    """
    mark = code_mark()
    for process, begun in [(one, one.begin("code")) for one in processes]:
        if process.result(begun) != mark:
            raise UserError(
                f"{process.name} runs other code, or another torch, than this process: install "
                "the same version on every node"
            )


def check_disk(processes: Sequence[Actor], file: Path) -> None:
    """Refuse processes that do not see ``file`` as it is here.

    Raises:
        UserError: it names one of them.
        Died: one of them has gone.
    """
    known, path = file.read_bytes(), file.resolve()
    for process, begun in [(one, one.begin("seen", path)) for one in processes]:
        if process.result(begun) != known:
            raise UserError(
                f"{process.name} does not see {path.parent}: put --run-dir on a disk that all "
                "nodes share, or say --cluster.checkpoints driver"
            )
