"""Training in a loop of your own: ``python -m examples.own_loop``.

In a notebook, or where an event loop already runs: ``await train()``.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from coterie import algorithms, envs
from coterie.agents.team import AgentSettings, LearningSetup, build_team
from coterie.algorithms import LearnerSettings, assign_credit
from coterie.datatypes import Episode, Problem, Sampling
from coterie.rollouts import Collector, tasks_for


async def train(env: str = "gymnasium:Blackjack-v1", steps: int = 30) -> list[float]:
    """Train one player, and print its mean reward before and after.

    Args:
        env: any environment with the role ``player``.
        steps: number of updates.

    Returns:
        The mean reward before and after.
    """
    algorithm = replace(algorithms.get("grpo"), entropy_coefficient=0.02)
    learning = LearningSetup(algorithm, LearnerSettings(), temperature=1.5, total_steps=steps)
    agents = {"player": AgentSettings("tiny:dora")}
    async with build_team(agents, learning=learning).open() as team:
        collector = Collector(
            lambda: envs.make(env, codecs=team.codecs),
            team.policies,
            sampling=Sampling(max_new_tokens=8, temperature=1.5),
        )

        async def play(step: int, mode: str, games: int, replicas: int) -> list[Episode]:
            problems = [Problem(f"{mode}:{step}:{game}", "", "") for game in range(games)]
            tasks = tasks_for(problems, seed=0, step=step, mode=mode, replicas=replicas)
            async with team.answering():
                return await collector.collect(tasks)

        before = mean_reward(await play(0, "eval", 256, 1))
        for step in range(1, steps + 1):
            episodes = await play(step, "train", 16, 8)
            rows = [row for episode in episodes for row in episode.trajectories]
            advantage_B = assign_credit(rows, "problem+role", algorithm).advantage_B
            for role, trained in team.trained.items():
                of_role = [index for index, row in enumerate(rows) if row.role == role]
                trained.update([rows[index] for index in of_role], advantage_B[of_role])
        after = mean_reward(await play(0, "eval", 256, 1))
    print(f"mean reward {before:.3f} -> {after:.3f}")
    return [before, after]


def mean_reward(episodes: Sequence[Episode]) -> float:
    """Mean over episodes of the player's reward."""
    return sum(episode.trajectories[-1].reward for episode in episodes) / len(episodes)


if __name__ == "__main__":
    asyncio.run(train())
