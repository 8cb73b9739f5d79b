"""Many episodes at once."""

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
    """One episode to be played: everything that it depends on."""

    problem: Problem | None
    seed: int
    replica: int = 0
    step: int = 0
    epoch: int = 1
    mode: str = "train"

    def options(self) -> dict[str, Any]:
        """The environment's reset options."""
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
    """One task per problem and replica; replicas share the environment's seed, so they differ only
    in what is sampled.

    Args:
        problems: in order.
        seed: the run's.
        step: training step, counted from 1.
        epoch: counted from 1.
        mode: what the environment plays.
        replicas: episodes of each problem.
    """
    return [
        Task(problem, derive_seed(seed, mode, step, problem.id, place), replica, step, epoch, mode)
        for place, problem in enumerate(problems)
        for replica in range(replicas)
    ]


class Collector:
    """Plays episodes concurrently against one team.

    Environments are built once and reused; ``concurrency`` bounds how many episodes are in flight.
    What a step asks of the scorer is computed in one batch over all episodes that are about to
    step.
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
        self.policies = dict(policies)
        self.sampling = sampling
        self.deadlines = deadlines
        self.concurrency = concurrency
        self._make_env = make_env
        self._idle: list[TokenEnvironment] = []
        self._prefetch = None
        if scorer is not None:
            # Scores do not depend on what they are computed with: any order will do.
            self._prefetch = Coalescer(_prefetcher(scorer), key=lambda _: 0)

    async def collect(
        self, tasks: Sequence[Task], *, done: Callable[[], None] | None = None
    ) -> list[Episode]:
        """Play every task; the episodes come back in the order of the tasks.

        Args:
            tasks: what to play.
            done: called after each finished episode (for a progress bar).

        Raises:
            UserError: as :func:`check_paid` does.
        """
        episodes: list[Episode | None] = [None] * len(tasks)
        waiting = iter(enumerate(tasks))

        async def worker() -> None:
            for place, task in waiting:
                episodes[place] = episode = await self.play(task)
                ENDED.add(len(episode.trajectories))
                if done is not None:
                    done()

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
    """``episodes``, of a step or an evaluation.

    Raises:
        UserError: a tenth of them, and more than one, failed because what their programs gave pays
            nobody (``unpaid`` of :attr:`coterie.datatypes.Episode.info`).
    """
    unpaid = [str(e.info.get("failure")) for e in episodes if e.info.get("unpaid")]
    if unpaid and len(unpaid) >= min(len(episodes), max(2, -(-len(episodes) // 10))):
        why = Counter(unpaid).most_common(1)[0][0]
        raise UserError(f"{why}. So ended {len(unpaid)} of {len(episodes)} episodes.")
    return episodes


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of ``works``, in order.

    Raises:
        BaseException: that of the first to fail; the others are cancelled.
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
