"""Evaluation of ``solo``: Pass@1, Pass@k over all answers to a problem, and the share of answers
that state one."""

from collections.abc import Iterable, Sequence

from coterie.datatypes import Episode, Problem
from coterie.envs.solo import SoloSettings
from coterie.evaluation.evaluation import Evaluation, Outcomes, Play, Resampled, Row, column_means
from coterie.evaluation.metrics.means import Floats, as_floats, mean_present
from coterie.evaluation.metrics.passk import pass_at_k


async def examine(
    play: Play, problems: Sequence[Problem], roles: Sequence[str], settings: SoloSettings
) -> Outcomes:
    """Play the problems; return measurements of each answer by problem."""
    count = settings.eval_answers
    episodes = await play(problems, mode="eval", replicas=count)
    groups = [episodes[first : first + count] for first in range(0, len(episodes), count)]
    return {
        "problems": [problem.id for problem in problems],
        "correct": [[_value(episode, "correct") for episode in group] for group in groups],
        "stated": [[_value(episode, "stated") for episode in group] for group in groups],
    }


def estimate(outcomes: Outcomes, resamples: int, seed: int) -> dict[str, Resampled]:
    """Return every metric with its bootstrap over problems."""
    correct_QN = as_floats(outcomes["correct"])
    columns: dict[str, Floats] = {
        f"pass@{k}": pass_at_k(correct_QN, k) for k in dict.fromkeys((1, correct_QN.shape[1]))
    }
    columns["stated"] = mean_present(as_floats(outcomes["stated"]), axis=1)
    return column_means(columns, resamples, seed)


def further(metrics: Iterable[str]) -> list[Row]:
    """Return rows for Pass@k, whose k depends on the number of answers."""
    names = [name for name in metrics if name.startswith("pass@")]
    return [
        *(Row(name.capitalize(), name) for name in names),
        Row("States an answer", "stated"),
    ]


def _value(episode: Episode, key: str) -> float | None:
    """A measurement of the episode's only answer; None if the answer is missing."""
    [row] = episode.trajectories
    return float(row.info[key]) if row.status == "ok" else None


EVALUATION = Evaluation(
    examine=examine,
    estimate=estimate,
    rows=lambda roles: [],
    further=further,
    answers=lambda roles, own: own.eval_answers,
)
