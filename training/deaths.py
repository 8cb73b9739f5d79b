"""Messages for a run of which a process has died, with the way to continue."""

from collections.abc import Iterator
from contextlib import contextmanager

from coterie.datatypes import UserError
from coterie.teams.backend import Died
from coterie.training import saved
from coterie.training.rundir import RunDirectory


@contextmanager
def said_while_starting() -> Iterator[None]:
    """While open, a process that dies has no work to lose; the message says so.

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
    """Turn the death of a process of ``run`` into a sentence with the way out.

    Raises:
        UserError: ``error`` is such a death.
    """
    if isinstance(error, Died):
        goes_on = saved.latest(run.checkpoints) is not None
        then = "continues from its last checkpoint" if goes_on else "starts it again"
        raise UserError(f"{error}; --resume {run.path} {then}") from None
