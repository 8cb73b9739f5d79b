"""An evaluation out of one function: what there is to know of one held-out episode."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from coterie.datatypes import Episode, Problem, UserError
from coterie.evaluation.evaluation import Evaluation, Outcomes, Play, Resampled, Row, column_means
from coterie.evaluation.metrics.means import as_floats

Measure = Callable[[Episode], Mapping[str, Any]]
"""An episode -> numbers by name, None for what this episode has not."""


def per_episode(
    measure: Measure,
    *,
    better: Mapping[str, str] = MappingProxyType({}),
    row: Callable[[str], Row] | None = None,
) -> Evaluation:
    """Play every held-out problem once; the table has a line for every name that ``measure`` gives.

    Args:
        measure: numbers of one episode by name; means over problems are shown.
        better: name -> ``higher`` or ``lower``, for the changes that are to be called better or
            worse.
        row: name -> its line, instead of the name itself.

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
        found = [dict(measure(episode)) for episode in episodes]
        return {
            "problems": [problem.id for problem in problems],
            "measured": {
                name: [_number(name, one.get(name)) for one in found]
                for name in dict.fromkeys(name for one in found for name in one)
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


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, bool | int | float | np.number | np.bool_) or math.isinf(value):
        raise UserError(
            f"the evaluation measured {name!r} as {value!r:.80}; it must be a finite number, or "
            "None where there is none"
        )
    return None if math.isnan(value) else float(value)
