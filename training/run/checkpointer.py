"""A run's position, and the checkpoints from which it continues."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from coterie.agents.team.backend import Learners, RestorePoint
from coterie.agents.team.team import Team
from coterie.problems.stream import ProblemStream
from coterie.training.run import checkpoint, checkpoint_paths
from coterie.training.run.directory import LOGS, RunDirectory
from coterie.training.run.summary import Tally


class Keeper:
    """Saves a run's state and restores it."""

    def __init__(
        self, run: RunDirectory, team: Team, *, keep: int, tell: Callable[[str], None]
    ) -> None:
        """
        Args:
            run: holds the checkpoints.
            team: whose trained roles are saved.
            keep: checkpoints on the disk at most.
            tell: shows a sentence.
        """
        self._run, self._team, self._keep, self._tell = run, team, keep, tell
        self.progress = checkpoint.Progress(0, 0, run.log_sizes(), {})
        self.tally = Tally({})

    def restore(self, stream: ProblemStream) -> None:
        """Continue from the newest checkpoint, or from the beginning where there is none.
        ``stream`` gives the training problems.

        Raises:
            UserError: the checkpoint is damaged.
        """
        newest = checkpoint_paths.latest(self._run.checkpoints)
        if newest is None:
            self._tell("It was stopped before its first checkpoint and starts again.")
            self.progress = checkpoint.Progress(0, 0, dict.fromkeys(LOGS, 0), {})
        else:

            def read(learners: Learners) -> RestorePoint:
                self.progress = checkpoint.load(newest, learners)
                return partial(checkpoint.load_roles, newest)

            self._team.backend.restore(read)
        self._run.cut_logs(self.progress.logs)
        stream.cursor = self.progress.cursor
        self.tally = Tally(self.progress.counters)

    def advance(self, **changes: Any) -> None:
        """Set fields of :class:`coterie.training.run.checkpoint.Progress`."""
        self.progress = replace(self.progress, **changes)

    def save(self) -> None:
        """Write a checkpoint of the last whole step.

        Raises:
            UserError: the disk is full or cannot be written.
        """
        self.advance(logs=self._run.log_sizes(), counters=self.tally.counters())

        def write(learners: Learners) -> RestorePoint:
            root = self._run.checkpoints
            path = checkpoint.save(root, self.progress, learners, keep=self._keep)
            return partial(checkpoint.load_roles, path)

        self._team.backend.save(write)
