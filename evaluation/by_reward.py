"""Evaluation of an environment that brings none: the mean reward of each role."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.evaluation import Evaluation, Outcomes, Play, Resampled, Row
from evaluation.metrics.bootstrap import resampled_means
from evaluation.metrics.present import as_floats, mean_present
from vocabulary import Episode, Problem


async def examine(
    play: Play, problems: Sequence[Problem], roles: Sequence[str], settings: Any
) -> Outcomes:
    """Each role's mean reward, problem by problem."""
    episodes = await play(problems, mode="eval")
    return {
        "problems": [problem.id for problem in problems],
        "reward": {role: [_reward(episode, role) for episode in episodes] for role in roles},
    }


def estimate(outcomes: Outcomes, resamples: int, seed: int) -> dict[str, Resampled]:
    """``reward/ROLE`` and ``reward/team``, the mean over roles."""
    rewards = {role: as_floats(values) for role, values in outcomes["reward"].items()}
    rewards["team"] = mean_present(np.stack(list(rewards.values())), axis=0)
    values_QM = np.stack(list(rewards.values()), axis=1)
    means_RM = resampled_means(values_QM, resamples=resamples, seed=seed)
    return {
        f"reward/{role}": Resampled(
            float(mean_present(values_Q)), means_R, int((~np.isnan(values_Q)).sum())
        )
        for (role, values_Q), means_R in zip(rewards.items(), means_RM.T)
    }


def rows(roles: Sequence[str]) -> list[Row]:
    """One line a role."""
    return [Row(f"Reward {role}", f"reward/{role}") for role in (*roles, "team")]


def headline(roles: Sequence[str]) -> list[str]:
    """What the progress bar shows."""
    return [f"reward/{role}" for role in roles]


def _reward(episode: Episode, role: str) -> float | None:
    """Mean over the role's agents that answered; None without any."""
    rewards = {
        row.agent: row.reward
        for row in episode.trajectories
        if row.role == role and row.status == "ok"
    }
    return float(np.mean(list(rewards.values()))) if rewards else None


EVALUATION = Evaluation(examine=examine, estimate=estimate, rows=rows, headline=headline)
