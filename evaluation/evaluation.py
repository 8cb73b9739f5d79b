"""The parts of an environment's evaluation, and the figures that it computes."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from coterie.datatypes import Episode, Problem
from coterie.evaluation.metrics.intervals import Resampled, mean_intervals
from coterie.evaluation.metrics.means import Floats, as_floats
from coterie.evaluation.report_labels import ReportLabels

# Q problems, M columns, R resamples

Outcomes = dict[str, Any]
"""Results of each problem as JSON data. A run stores them, so that intervals and paired differences
can be computed later without sampling."""


SETS = "sets"
"""First part of the name of a metric of one of several sets: ``sets/gsm8k/pass@1/alice``."""


class Play(Protocol):
    """Plays the episodes of an evaluation."""

    def __call__(
        self, problems: Sequence[Problem], *, mode: str, replicas: int = 1
    ) -> Awaitable[list[Episode]]:
        """Play ``replicas`` episodes of each problem; return them in the order of the problems."""
        ...


@dataclass(frozen=True)
class Row:
    """One line of the table that a run ends with."""

    label: str
    metric: str
    better: str = "higher"
    """``higher``, ``lower`` or ``neither``."""
    rare: bool = False
    """Hide the row where it is always 0; for counts of rare events."""


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, each divided into parts that sum to one."""

    title: str
    note: str
    """A sentence that says how to read it."""
    bars: list[tuple[str, list[tuple[str, float]]]]
    """(label, [(part, its share)])."""


@dataclass(frozen=True)
class Dots:
    """Dots in the unit square; ideal dots lie on the diagonal."""

    title: str
    note: str
    x_label: str
    y_label: str
    sets: list[tuple[str, list[tuple[float, float, float]]]]
    """(label, [(x, y, share)]); the share sets the area of a dot."""


Picture = Bars | Dots


@dataclass(frozen=True)
class Evaluation:
    """How one environment is evaluated."""

    examine: Callable[[Play, Sequence[Problem], Sequence[str], Any], Awaitable[Outcomes]]
    """(play, problems, roles, the environment's settings) -> outcomes. Only this samples. A list
    that is as long as ``problems``, itself or in a dictionary, has an entry for each problem."""
    estimate: Callable[[Outcomes, int, int], dict[str, Resampled]]
    """(outcomes, resamples, seed) -> metrics by flat name."""
    rows: Callable[[Sequence[str]], list[Row]]
    """roles -> the lines of the table."""
    headline: Callable[[Sequence[str]], list[str]] = lambda roles: [
        f"measured/{role}/correct" for role in roles
    ]
    """roles -> the training metrics that the progress bar shows."""
    pictures: Callable[[Mapping[str, Outcomes]], list[Picture]] = lambda outcomes: []
    """Outcomes by name (``before``, ``after``) -> what a report shows of them."""
    further: Callable[[Iterable[str]], list[Row]] = lambda metrics: []
    """Names of all metrics -> more lines, for metrics whose names are known only afterwards."""
    answers: Callable[[Sequence[str], Any], int] = lambda roles, settings: len(roles)
    """(roles, the environment's settings) -> approximate number of model answers to one held-out
    problem."""
    labels: ReportLabels = field(default_factory=ReportLabels)
    """Tags, marks and phases of its episodes in a report."""

    def table(self, roles: Sequence[str], *measured: Mapping[str, Any]) -> list[Row]:
        """The lines of the table for the metrics ``measured``, such as before and after. Where
        there are several sets, figures of which more is better are followed by those of each."""
        metrics = dict.fromkeys(name for metrics_at in measured for name in metrics_at)
        whole = [name for name in metrics if not name.startswith(f"{SETS}/")]
        sets = dict.fromkeys(n.split("/")[1] for n in metrics if n.startswith(f"{SETS}/"))
        return [
            line
            for row in (*self.rows(roles), *self.further(whole))
            for line in (row, *_rows_of_sets(row, sets, metrics))
            if not (line.rare and all(_is_zero(at.get(line.metric)) for at in measured))
        ]


def _rows_of_sets(row: Row, sets: Iterable[str], metrics: Collection[str]) -> list[Row]:
    names = {name: f"{SETS}/{name}/{row.metric}" for name in sets if row.better == "higher"}
    return [
        replace(row, label=f"{row.label}, {name}", metric=metric)
        for name, metric in names.items()
        if metric in metrics
    ]


def _is_zero(value: Any) -> bool:
    """Whether a figure is 0 or missing."""
    return value is None or (value.value if isinstance(value, Resampled) else value) == 0


def column_means(columns: Mapping[str, Floats], resamples: int, seed: int) -> dict[str, Resampled]:
    """The mean of each column with its bootstrap, all from the same resamples.

    Args:
        columns: metric -> (Q,) values by problem; NaN: the problem has none.
        resamples: of the bootstrap over problems.
        seed: of the bootstrap.
    """
    values_QM = np.stack(list(columns.values()), axis=1)
    return dict(zip(columns, mean_intervals(values_QM, resamples=resamples, seed=seed)))


def with_derived(
    means: Mapping[str, Resampled],
    derive: Callable[[Mapping[str, Floats]], Mapping[str, Floats]],
    count: Callable[[str], int],
) -> dict[str, Resampled]:
    """Add functions of means, computed for the data and for every resample.

    Args:
        means: metric -> its mean.
        derive: means by name -> derived values by name.
        count: derived name -> number of questions.
    """
    point = derive({name: as_floats(mean.value) for name, mean in means.items()})
    drawn = derive({name: mean.replicates for name, mean in means.items()})
    return {**means} | {
        name: Resampled(float(value), as_floats(drawn[name]), count(name))
        for name, value in point.items()
    }


def difference(first: Resampled, other: Resampled) -> Resampled:
    """``other - first``, paired by resample."""
    return Resampled(
        other.value - first.value,
        other.replicates - first.replicates,
        min(first.count, other.count),
    )


def verdict(change: Resampled, row: Row) -> str:
    """What a change is called; empty if its interval includes 0, or if it is of few questions.

    ``better`` or ``worse`` by the direction of the row, ``other`` if the row has no direction.
    """
    if not change.excludes_zero:
        return ""
    if row.better == "neither":
        return "other"
    return "better" if (change.value > 0) == (row.better == "higher") else "worse"
