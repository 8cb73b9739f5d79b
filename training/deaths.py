"""What is said where a process of a run has died, and how it goes on from there."""

from collections.abc import Iterator
from contextlib import contextmanager

from coterie.datatypes import UserError
from coterie.teams.backend import Died
from coterie.training import saved
from coterie.training.rundir import RunDirectory


@contextmanager
def said_while_starting() -> Iterator[None]:
    """Inside, nothing is done that could be lost.

    Raises:
        UserError: a process has died.
    """
    try:
        yield
    except Died as error:
        raise UserError(
            f"{error}, while the run started; nothing is lost: give the same command again, or "
            "raise --cluster.restarts"
        ) from None


def said_at_work(error: BaseException | None = None, *, run: RunDirectory) -> None:
    """Raise a sentence with the way out where ``error``, which ends ``run``, is that one of its
    processes has died.

    Raises:
        UserError: it is.
    """
    if isinstance(error, Died):
        goes_on = saved.latest(run.checkpoints) is not None
        then = "continues from its last checkpoint" if goes_on else "starts it again"
        raise UserError(f"{error}; --resume {run.path} {then}") from None
