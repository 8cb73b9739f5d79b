"""Concurrent episodes: tasks, and the collector that plays them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from coterie.cli.progress import ENDED
from coterie.datatypes import (
    Episode,
    Policy,
    Problem,
    Sampling,
    Scorer,
    ScoreRequests,
    UserError,
    derive_seed,
)
from coterie.rollouts.coalesce import Coalescer
from coterie.rollouts.play import Deadlines, TokenEnvironment, play

T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """An episode to play, with everything that it depends on."""

    problem: Problem | None
    seed: int
    replica: int = 0
    step: int = 0
    epoch: int = 1
    mode: str = "train"

    def options(self) -> dict[str, Any]:
        """Return the environment's reset options."""
        options: dict[str, Any] = {
            "step": self.step,
            "epoch": self.epoch,
            "mode": self.mode,
            "replica": self.replica,
        }
        return options if self.problem is None else {"problem": self.problem, **options}


def tasks_for(
    problems: Iterable[Problem],
    *,
    seed: int,
    step: int = 0,
    epoch: int = 1,
    mode: str = "train",
    replicas: int = 1,
) -> list[Task]:
    """Return a task for each problem and replica. Replicas share the environment's seed and differ
    only in their samples.

    Args:
        problems: in order.
        seed: the run's seed.
        step: training step, counted from 1.
        epoch: counted from 1.
        mode: the environment's mode.
        replicas: episodes of each problem.
    """
    return [
        Task(problem, derive_seed(seed, mode, step, problem.id, i), replica, step, epoch, mode)
        for i, problem in enumerate(problems)
        for replica in range(replicas)
    ]


class Collector:
    """Plays episodes of one team concurrently.

    Environments are reused. Score requests of all episodes that are about to step are computed in
    one batch.
    """

    def __init__(
        self,
        make_env: Callable[[], TokenEnvironment],
        policies: Mapping[str, Policy],
        *,
        sampling: Sampling | Mapping[str, Sampling],
        scorer: Scorer | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 (frozen)
        concurrency: int = 1024,
    ) -> None:
        """
        Args:
            make_env: builds a token view; called as often as episodes are in flight.
            policies: role -> policy for every role that may act.
            sampling: defaults for all roles or for each role; see :func:`play`.
            scorer: grades the answers of all episodes in batches; None: each environment grades
                its own.
            deadlines: limits on waiting for policies.
            concurrency: most episodes in flight.
        """
        self.policies = dict(policies)
        self.sampling = sampling
        self.deadlines = deadlines
        self.concurrency = concurrency
        self._make_env = make_env
        self._idle: list[TokenEnvironment] = []
        self._prefetch = None
        if scorer is not None:
            # Scores do not depend on the batch, so any order will do.
            self._prefetch = Coalescer(_prefetcher(scorer), key=lambda _: 0)

    async def collect(self, tasks: Sequence[Task]) -> list[Episode]:
        """Play every task; return the episodes in the order of the tasks.

        Args:
            tasks: the episodes to play.

        Raises:
            UserError: see :func:`check_paid`.
        """
        episodes: list[Episode | None] = [None] * len(tasks)
        waiting = iter(enumerate(tasks))

        async def worker() -> None:
            for i, task in waiting:
                episodes[i] = episode = await self.play(task)
                ENDED.add(len(episode.trajectories))

        await together(worker() for _ in range(min(self.concurrency, len(tasks))))
        return check_paid([episode for episode in episodes if episode is not None])

    async def play(self, task: Task) -> Episode:
        """Play one task."""
        env = self._idle.pop() if self._idle else self._make_env()
        try:
            return await play(
                env,
                self.policies,
                seed=task.seed,
                replica=task.replica,
                options=task.options(),
                sampling=self.sampling,
                deadlines=self.deadlines,
                prefetch=self._prefetch,
            )
        finally:
            self._idle.append(env)


def check_paid(episodes: list[Episode]) -> list[Episode]:
    """Return ``episodes`` of a step or an evaluation, unless too many of them failed without a
    reward.

    Raises:
        UserError: at least a tenth of the episodes, and at least two, failed because their programs
            reported no usable reward (``unpaid`` in :attr:`coterie.datatypes.Episode.info`).
    """
    unpaid = [str(e.info.get("failure")) for e in episodes if e.info.get("unpaid")]
    if unpaid and len(unpaid) >= min(len(episodes), max(2, -(-len(episodes) // 10))):
        why = Counter(unpaid).most_common(1)[0][0]
        raise UserError(f"{len(unpaid)} of {len(episodes)} episodes ended without a reward: {why}")
    return episodes


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently; return their results in order.

    Raises:
        BaseException: the first failure; the other coroutines are cancelled.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


def _prefetcher(scorer: Scorer) -> Callable[[list[ScoreRequests]], list[None]]:
    def run(requests: list[ScoreRequests]) -> list[None]:
        scorer.prefetch(requests)
        return [None] * len(requests)

    return run
