"""A run's position, and the checkpoints from which it continues.

What happens on ``--resume``, in order:

1. :mod:`coterie.cli.command_line` reads ``config.json``. Only ``--steps`` and the place of models
   may change. A run that has done all of ``--steps`` leaves here.
2. :mod:`coterie.training.config.preflight` validates the settings and opens the problems, as for a
   new run.
3. :func:`coterie.training.runtime.build` locks the directory, compares models and problems with
   ``environment.json`` (:mod:`coterie.training.run.provenance`), names plug-ins that have changed,
   and compares the files of the newest checkpoint with their checksums
   (:func:`coterie.training.run.checkpoint.check`).
4. :func:`coterie.training.runtime.assemble` loads every model as a new run does.
5. :meth:`Checkpointer.restore` puts the checkpoint's weights, optimizers and generator in their
   place, cuts the logs back to their size at that moment, and moves the problem stream and the
   counters there. Without a checkpoint the run starts again.
6. :class:`coterie.training.session.Session` continues: stored evaluations are read, and warm-up and
   training begin after the last whole step.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from coterie.agents.team.backend import Learners, RestorePoint
from coterie.agents.team.team import Team
from coterie.problems.stream import Position, ProblemStream
from coterie.training.run import checkpoint, checkpoint_paths
from coterie.training.run.directory import LOGS, RunDirectory
from coterie.training.run.summary import Tally


class Checkpointer:
    """Saves a run's state and restores it."""

    def __init__(
        self, run: RunDirectory, team: Team, *, keep: int, tell: Callable[[str], None]
    ) -> None:
        """
        Args:
            run: holds the checkpoints.
            team: whose trained roles are saved.
            keep: number of checkpoints that stay on the disk.
            tell: shows a sentence.
        """
        self._run, self._team, self._keep, self._tell = run, team, keep, tell
        self.progress = checkpoint.Progress(0, 0, run.log_sizes(), {})
        self.tally = Tally({})

    def restore(self, stream: ProblemStream) -> None:
        """Continue from the newest checkpoint, or from the beginning if there is none.

        Args:
            stream: gives the training problems.

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
                # A backend calls this for a learner whose process it has replaced.
                return partial(checkpoint.load_roles, newest)

            self._team.backend.restore(read)
        self._run.cut_logs(self.progress.logs)
        stream.position = Position(self.progress.cursor, self.progress.difficulty)
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
