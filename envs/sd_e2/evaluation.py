"""Evaluation of ``sd-e2``: Pass@k of each role and of their union, and statistics of strategies.

The held-out problems are played once. With several roles, trained separately, the union is the
oracle over independent models that CoRe uses as a baseline (arXiv:2601.21600, section 5.1).
"""

from collections.abc import Sequence

import numpy as np

from coterie.datatypes import Episode, Problem
from coterie.envs.sd_e2.settings import SdE2Settings
from coterie.evaluation.evaluation import Evaluation, Outcomes, Play, Resampled, Row, column_means
from coterie.evaluation.metrics.means import as_floats, mean_present
from coterie.evaluation.metrics.passk import pass_columns

# Q problems, N samples of one role, R resamples

_KS = (1, 2)
_MEASURED = {
    "correct": "correct",
    "strategies": "strategies",
    "distinct": "distinct",
    "any_right": "raw_exploitation",
}


async def examine(
    play: Play, problems: Sequence[Problem], roles: Sequence[str], settings: SdE2Settings
) -> Outcomes:
    """Play the problems; return measurements of each trace by problem."""
    episodes = await play(problems, mode="eval")
    return {
        "problems": [problem.id for problem in problems],
        **{
            name: {role: [_values(episode, role, key) for episode in episodes] for role in roles}
            for name, key in _MEASURED.items()
        },
    }


def estimate(outcomes: Outcomes, resamples: int, seed: int) -> dict[str, Resampled]:
    """Return every metric with its bootstrap over problems."""
    columns = pass_columns(outcomes["correct"], _KS)
    for role in outcomes["correct"]:
        for name in ("strategies", "distinct"):
            columns[f"{name}/{role}"] = mean_present(as_floats(outcomes[name][role]), axis=1)
        share_QN = as_floats(outcomes["any_right"][role])
        # A share above 0 means that a strategy is right; failed traces stay missing.
        right_QN = np.where(np.isnan(share_QN), np.nan, share_QN > 0)
        columns[f"any_right/{role}"] = mean_present(right_QN, axis=1)

    return column_means(columns, resamples, seed)


def rows(roles: Sequence[str]) -> list[Row]:
    """Return the rows of the table at the end of a run."""
    team = [Row(f"Team Pass@{k}", f"team_pass@{k}") for k in _KS] if len(roles) > 1 else []
    return [
        *(Row(f"Pass@{k} {role}", f"pass@{k}/{role}") for k in _KS for role in roles),
        *team,
        *(Row(f"Strategies {role}", f"strategies/{role}", "neither") for role in roles),
        *(Row(f"Distinct {role}", f"distinct/{role}", "neither") for role in roles),
        *(Row(f"Any right {role}", f"any_right/{role}") for role in roles),
    ]


def _values(episode: Episode, role: str, key: str) -> list[float | None]:
    """One number for each trace of ``role``; None for failed ones."""
    return [
        float(row.info[key]) if row.status == "ok" else None
        for row in episode.trajectories
        if row.role == role
    ]


EVALUATION = Evaluation(
    examine=examine,
    estimate=estimate,
    rows=rows,
    answers=lambda roles, own: len(roles) * own.eval_traces,
)
