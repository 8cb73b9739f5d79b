"""One sampling pass of one model over many questions."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import envs
from envs.corea_deferral import CoreaDeferralSettings
from launch.compare.store import Responses
from rewards.grading.scorer import AnswerScorer
from rollouts import Collector, tasks_for
from teams.team import Team
from vocabulary import Episode, Problem, Sampling, Trajectory, derive_seed

ROLE = "small"
"""Whom the model plays, whatever its size."""


def respond(
    team: Team,
    problems: Sequence[Problem],
    *,
    samples: int,
    temperature: float,
    max_new_tokens: int,
    stop: tuple[str, ...],
    seed: int,
) -> Responses:
    """``samples`` responses of the team's one model to every problem, in the words of
    corea-deferral; the team is closed."""
    settings = CoreaDeferralSettings(
        traces=samples, learners=(ROLE,), max_new_tokens=max_new_tokens, stop=stop
    )
    scorer = AnswerScorer()
    tasks = tasks_for(problems, seed=derive_seed(seed, "comparison"))

    async def play() -> list[Episode]:
        async with team.open():
            collector = Collector(
                lambda: envs.make(
                    "corea-deferral", settings=settings, codecs=team.codecs, scorer=scorer
                ),
                team.policies,
                sampling=Sampling(max_new_tokens, temperature),
                scorer=scorer,
                concurrency=256,
            )
            return await collector.collect(tasks)

    try:
        episodes = asyncio.run(play())
    finally:
        scorer.close()
    rows = [episode.trajectories for episode in episodes]

    def table(read: Callable[[Trajectory], Any]) -> list[list[Any]]:
        return [[read(row) if row.status == "ok" else None for row in some] for some in rows]

    return {
        "correct": table(lambda row: float(bool(row.info["correct"]))),
        "confidence": table(lambda row: row.info["confidence"]),
        "answer": table(lambda row: row.info["answer"]),
        "text": table(lambda row: "".join(row.texts[1:])),
        "prompt": table(lambda row: float(row.turns[0][0])),
        "output": table(lambda row: float(row.mask.sum())),
        "probability": table(mean_probability),
    }


def mean_probability(row: Trajectory) -> float:
    """Arithmetic mean of the sampled tokens' probabilities at the sampling temperature."""
    sampled = row.logprobs[row.mask].astype(np.float64)
    return float(np.exp(sampled).mean()) if len(sampled) else 0.0
