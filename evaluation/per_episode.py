"""An evaluation made of one function that measures a held-out episode."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from coterie.datatypes import Episode, Problem, Trajectory, UserError, raised
from coterie.evaluation.evaluation import Evaluation, Outcomes, Play, Resampled, Row, column_means
from coterie.evaluation.metrics.means import as_floats

Measure = Callable[[Episode], Mapping[str, Any]]
"""Episode -> numbers by name; None for a number that the episode does not have."""


def per_episode(
    measure: Measure,
    *,
    better: Mapping[str, str] = MappingProxyType({}),
    row: Callable[[str], Row] | None = None,
) -> Evaluation:
    """Play every held-out problem once; the table has a line for every name that ``measure`` gives.

    Args:
        measure: numbers of one episode by name; means over problems are shown.
        better: name -> ``higher`` or ``lower``; changes of other names are neither better nor
            worse.
        row: name -> its line; by default the name is the label.

    Example: ``per_episode(lambda episode: {"right": episode.info["correct"]})``
    """
    if wrong := set(better.values()) - {"higher", "lower", "neither"}:
        raise UserError(f"per_episode: better is {wrong.pop()!r}; say higher, lower or neither")

    def line(name: str) -> Row:
        return Row(name, name, better.get(name, "neither"))

    async def examine(
        play: Play, problems: Sequence[Problem], roles: Sequence[str], settings: Any
    ) -> Outcomes:
        episodes = await play(problems, mode="eval")
        measured = [_measured(measure, episode) for episode in episodes]
        return {
            "problems": [problem.id for problem in problems],
            "measured": {
                name: [_number(name, numbers.get(name)) for numbers in measured]
                for name in dict.fromkeys(name for numbers in measured for name in numbers)
            },
        }

    def further(metrics: Iterable[str]) -> list[Row]:
        return [(row or line)(name) for name in metrics]

    return Evaluation(
        examine=examine,
        estimate=estimate,
        rows=lambda roles: [],
        further=further,
        headline=lambda roles: [f"reward/{role}" for role in roles],
    )


def estimate(outcomes: Outcomes, resamples: int, seed: int) -> dict[str, Resampled]:
    """Every metric's mean over problems, with its bootstrap."""
    columns = {name: as_floats(values) for name, values in outcomes["measured"].items()}
    return column_means(columns, resamples, seed) if columns else {}


def _measured(measure: Measure, episode: Episode) -> dict[str, Any]:
    """Call the author's code."""
    try:
        result = measure(episode)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        why = raised(error)
    else:
        if isinstance(result, Mapping) and all(isinstance(name, str) for name in result):
            return dict(result)
        why = f"gave {result!r:.100}; it must give a dictionary of numbers by name"
    raise UserError(f"the evaluation of {episode.problem_id}: measure(episode) {why}")


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        is_number = isinstance(value, bool | int | float | np.number | np.bool_)
        number = float(value) if is_number else math.inf
    except OverflowError:  # an integer beyond all floats
        number = math.inf
    if math.isinf(number):
        raise UserError(
            f"the evaluation measured {name!r} as {value!r:.80}; it must be a finite number, or "
            "None where there is none"
        )
    return None if math.isnan(number) else number


def measure(episode: Episode) -> dict[str, float | None]:
    """An episode's numbers, by the names of the training log.

    ``reward/ROLE`` and its mean over roles, ``reward/team``; ``reward/ROLE/TERM`` where there are
    several terms; ``measured/ROLE/NAME``; ``episode/NAME`` for numbers and booleans in
    ``Outcome.episode``; ``failed/team``, the share of the agents that failed, 1 without any agent.
    """
    by_role: dict[str, list[Trajectory]] = {}
    # Each agent once, however many rows its contexts made.
    agents = {row.agent: row for row in episode.trajectories}.values()
    for row in agents:
        by_role.setdefault(row.role, []).append(row)
    answered = {role: [row for row in rows if row.status == "ok"] for role, rows in by_role.items()}
    rewards = {role: _mean(row.reward for row in rows) for role, rows in answered.items()}
    metrics = {f"reward/{role}": value for role, value in rewards.items()}
    metrics["reward/team"] = _mean(value for value in rewards.values() if value is not None)
    for role, rows in answered.items():
        terms = dict.fromkeys(name for row in rows for name in row.reward_terms)
        # A single term equals the reward.
        for name in terms if len(terms) > 1 else ():
            values = (row.reward_terms[name] for row in rows if name in row.reward_terms)
            metrics[f"reward/{role}/{name}"] = _mean(values)
    for role, rows in answered.items():
        for name in dict.fromkeys(name for row in rows for name in row.info):
            values = [row.info[name] for row in rows if _is_number(row.info.get(name))]
            # Failures are counted once, below.
            if values and name != "failed":
                metrics[f"measured/{role}/{name}"] = _mean(values)
    for name, value in episode.info.items():
        if _is_number(value):
            metrics[f"episode/{name}"] = float(value)
    failed = _mean(row.status != "ok" for row in agents)
    metrics["failed/team"] = 1.0 if failed is None else failed
    return metrics


def line(metric: str) -> Row:
    """``reward/alice/final`` as ``Reward alice: final``."""
    kind, role, *name = metric.split("/", 2)
    better = {"reward": "higher", "failed": "lower"}.get(kind, "neither")
    if kind == "episode":
        return Row(metric.partition("/")[2], metric, better)
    if kind == "measured":
        return Row(f"{name[0]} {role}", metric, better)
    return Row(": ".join([f"{kind.capitalize()} {role}", *name]), metric, better)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_) and math.isfinite(value)


def _mean(values: Iterable[float]) -> float | None:
    numbers = [float(value) for value in values]
    return sum(numbers) / len(numbers) if numbers else None


EVALUATION = per_episode(measure, row=line)
