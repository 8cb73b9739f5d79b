"""Many episodes at once."""

import asyncio
import time
from typing import Any

from coterie.cli.progress import ENDED
from coterie.datatypes import Problem, ScoreRequests
from coterie.rollouts import Collector, tasks_for

from .scripted import POLICIES, SAMPLING, TwoTurns

PROBLEMS = [Problem(f"p{i}", "q", "g") for i in range(6)]


async def test_episodes_come_back_in_order_and_are_scored_in_batches() -> None:
    class CountingScorer:
        batches: list[int] = []  # noqa: RUF012

        def prefetch(self, requests: list[ScoreRequests]) -> None:
            self.batches.append(len(requests))

    scorer: Any = CountingScorer()
    before = ENDED.done
    collector = Collector(TwoTurns, POLICIES, sampling=SAMPLING, scorer=scorer, concurrency=100)
    episodes = await collector.collect(tasks_for(PROBLEMS, seed=5, step=2, replicas=2))
    assert ENDED.done - before == sum(len(episode.trajectories) for episode in episodes) > 0
    assert [episode.problem_id for episode in episodes] == [f"p{i}" for i in range(6) for _ in "ab"]
    # Twelve episodes of two steps: two batches of twelve.
    assert scorer.batches == [12, 12]
    groups = [episode.trajectories[1].groups["problem+role"] for episode in episodes]
    assert len(set(groups)) == 6
    assert groups[0] == groups[1]


async def test_environments_are_reused_up_to_the_concurrency() -> None:
    made = []

    def make() -> TwoTurns:
        made.append(1)
        return TwoTurns()

    collector = Collector(make, POLICIES, sampling=SAMPLING, concurrency=3)
    assert len(await collector.collect(tasks_for(PROBLEMS, seed=5, replicas=2))) == 12
    assert len(made) == 3


async def test_environments_wait_side_by_side() -> None:
    class Waiting(TwoTurns):
        """Waits for something outside, which leaves the loop to others."""

        def reset(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("the loop would stand still")

        async def areset(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0.2)
            return super().reset(*args, **kwargs)

        async def astep(self, actions: dict[str, Any]) -> Any:
            await asyncio.sleep(0.2)
            return super().step(actions)

    start = time.monotonic()
    collector = Collector(Waiting, POLICIES, sampling=SAMPLING)  # type: ignore[arg-type]
    episodes = await collector.collect(tasks_for(PROBLEMS[:1], seed=1, replicas=10))
    assert [len(episode.trajectories) for episode in episodes] == [2] * 10
    assert time.monotonic() - start < 3  # one after the other they take 6 s
