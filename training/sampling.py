"""Plays the episodes of training steps; with ``--rollout.overlap`` a step ahead of the learner."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from coterie.agents.team.team import Team
from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.datatypes import Episode, Reading, Trajectory, UserError, derive_seed
from coterie.problems.stream import Position, ProblemStream
from coterie.rollouts import Collector, tasks_for
from coterie.training.batch import StepBatch, measured, sample_batch
from coterie.training.config.run_settings import RolloutSettings


class StepSampler:
    """Plays each step's problems with the weights of its start."""

    def __init__(
        self,
        team: Team,
        collector: Collector,
        stream: ProblemStream,
        algorithms: RoleAlgorithms,
        settings: RolloutSettings,
        *,
        group_key: str,
        replicas: int,
        agents: int,
        seed: int,
    ) -> None:
        """
        Args:
            team: plays, and learns.
            collector: plays a step's episodes.
            stream: gives the problems.
            algorithms: choose the rows of a step.
            settings: of rollouts.
            group_key: names the groups within which rewards are compared.
            replicas: episodes per problem.
            agents: number of agents in an episode.
            seed: of the run.
        """
        self.collector, self.group_key, self.replicas = collector, group_key, replicas
        self.answers = settings.problems_per_step * replicas * agents
        """About how many answers a step takes."""
        self._team, self._stream = team, stream
        self._algorithms, self._settings, self._seed = algorithms, settings, seed
        self._ahead: asyncio.Task[StepBatch] | None = None

    async def batch(self, step: int) -> tuple[StepBatch, Position]:
        """(the episodes of ``step``, where the problem stream stands after it)."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            batch = await ahead
        else:
            async with self._team.answering():
                batch = await self._sample(step)
        if self._stream.by_difficulty:
            # The next step is drawn after this, with --rollout.overlap as without.
            played = measured(batch, self._algorithms, self.group_key, self._team.trained)
            self._stream.measure(played)
        return batch, self._stream.position

    @property
    def overlaps(self) -> bool:
        """Whether steps are played ahead (``--rollout.overlap``)."""
        return self._settings.overlap

    @property
    def is_ahead(self) -> bool:
        """Whether a step is being played ahead now."""
        return self._ahead is not None

    async def begin(self, step: int) -> None:
        """Start to play ``step`` with the current weights; it proceeds while the loop runs."""
        # Engines need a copy of the weights before the learner changes them.
        await self._team.backend.refresh()
        self._ahead = asyncio.create_task(self._sample(step))

    async def settle(self) -> None:
        """Wait for the step that is being played ahead, so that no request is under way."""
        if self._ahead is not None:
            await asyncio.wait([self._ahead])

    async def aclose(self) -> None:
        """Cancel the step that is being played ahead."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.wait([self._ahead])
            self._ahead = None

    async def _sample(self, step: int) -> StepBatch:
        async def play(problems: int) -> list[Episode]:
            # Both are those of the cursor before the problems are taken; epochs count from 1.
            seed = derive_seed(self._seed, "train", self._stream.cursor)
            epoch = self._stream.epoch + 1
            taken = self._stream.take(problems)
            tasks = tasks_for(taken, seed=seed, step=step, epoch=epoch, replicas=self.replicas)
            return await self.collector.collect(tasks)

        async def read(rows: Sequence[Trajectory]) -> Mapping[int, Reading | None]:
            return await self._team.read(rows, step)

        learners, count = self._team.trained, self._settings.problems_per_step
        learning = self._team.learning
        done = learning.done_before(step) if learning else 0.0
        algorithms = self._algorithms.after(done)
        batch = await sample_batch(play, read, algorithms, self.group_key, count, learners)
        if step == 1:
            _check_learners_were_asked(batch.episodes, learners)
        return batch


def _check_learners_were_asked(episodes: Sequence[Episode], learners: Collection[str]) -> None:
    """Refuse to go on if no program sent a request to a role that learns."""
    if not all("failure" in episode.info for episode in episodes):
        return  # only environments of programs report failures
    if not any(row.role in learners for episode in episodes for row in episode.trajectories):
        raise UserError(
            f"none of the {len(episodes)} episodes of the first step asked a role that learns "
            f"({', '.join(learners)}): have the program send its requests to OPENAI_BASE_URL with "
            "the key and the model names that it is given."
        )
