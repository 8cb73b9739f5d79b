"""One sampling pass of one model over many questions."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import envs
from agents.local import LocalPolicy
from envs.corea_deferral import CoreaDeferralSettings
from launch.compare.store import Responses
from models.loading import LoadedRole
from rewards.scorer import AnswerScorer
from rollouts import Collector, tasks_for
from vocabulary import Problem, Sampling, Trajectory, derive_seed

_ROLE = "small"


def respond(
    model: LoadedRole,
    problems: Sequence[Problem],
    *,
    samples: int,
    temperature: float,
    max_new_tokens: int,
    stop: tuple[str, ...],
    seed: int,
) -> Responses:
    """``samples`` responses of ``model`` to every problem, in the words of corea-deferral."""
    settings = CoreaDeferralSettings(
        traces=samples, learners=(_ROLE,), max_new_tokens=max_new_tokens, stop=stop
    )
    scorer = AnswerScorer()
    try:
        collector = Collector(
            lambda: envs.make(
                "corea-deferral", settings=settings, codecs={_ROLE: model.codec}, scorer=scorer
            ),
            {_ROLE: LocalPolicy(model.handle, model.codec)},
            sampling=Sampling(max_new_tokens, temperature),
            scorer=scorer,
            concurrency=256,
        )
        tasks = tasks_for(problems, seed=derive_seed(seed, "comparison"))
        episodes = asyncio.run(collector.collect(tasks))
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
