"""Sample all that is missing, with as few models in memory as that needs."""

import asyncio
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from launch.suite.agents import Agent
from launch.suite.plan import Job
from launch.suite.sample import sample
from launch.suite.settings import SuiteComparison
from teams.team import Team, build_team

Missing = Sequence[tuple[Job, Sequence[Any]]]


def ask(
    missing: Missing, agents: Sequence[Agent], settings: SuiteComparison, console: Console
) -> None:
    """One agent at a time where they answer alone, and all together for workflows."""
    groups = [
        ([agent], [one for one in missing if one[0].asked.agent == agent.name]) for agent in agents
    ]
    groups = [(who, [one for one in some if not one[0].asked.experts]) for who, some in groups]
    groups.append((list(agents), [one for one in missing if one[0].asked.experts]))
    for needed, some in groups:
        if some:
            team = build_team(
                {one.name: one.settings for one in needed},
                vllm=settings.vllm if settings.engine == "vllm" else None,
                seed=settings.seed,
                together=False,
            )
            # One loop for all: connections to servers live in theirs.
            asyncio.run(_together(team, some, settings, console))


async def _together(
    team: Team, missing: Missing, settings: SuiteComparison, console: Console
) -> None:
    async with team.open():
        for job, wanted in missing:
            await _one(job, wanted, team, settings, console)


async def _one(
    job: Job,
    wanted: Sequence[Any],
    team: Team,
    settings: SuiteComparison,
    console: Console,
) -> None:
    title, played = job.title, 0
    with console.status(title) as status:

        def done(count: int) -> None:
            nonlocal played
            played += count
            status.update(f"{title} {played}/{len(wanted)}")

        failure = await sample(
            job.asked,
            team,
            wanted,
            sampling={"temperature": settings.temperature, "top_p": settings.top_p},
            seed=settings.seed,
            batch=settings.batch,
            store=job.stored.append,
            done=done,
        )
    if failure:
        stored = job.read()
        left = sum((problem.id, number) not in stored for problem, number in wanted)
        console.print(
            f"{title}: {left} of {len(wanted)} failed ({failure}); the same command asks for them "
            "again",
            soft_wrap=True,
            markup=False,
        )
