"""Two or more runs on the same held-out problems: differences, problem by problem."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from evaluation.evaluation import Resampled, Row
from evaluation.metrics.bootstrap import interval
from evaluation.numbers import with_interval

Runs = Mapping[str, Mapping[str, Resampled]]
"""Label -> metric -> value with its bootstrap; all from the same problems and seed, so that
resamples pair up."""


def difference(first: Resampled, other: Resampled) -> tuple[float, float, float]:
    """``other - first`` and its 95 % interval."""
    low, high = interval(other.replicates - first.replicates)
    return other.value - first.value, low, high


def verdict(change: tuple[float, float, float], row: Row) -> str:
    """``better`` or ``worse`` where the interval leaves out 0 and the row says what is better;
    ``other`` where it does not; else empty."""
    value, low, high = change
    if math.isnan(value) or math.isnan(low) or low <= 0 <= high:
        return ""
    if row.better == "neither":
        return "other"
    return "better" if (value > 0) == (row.better == "higher") else "worse"


_MARKS = {"better": "[green]*[/green]", "worse": "[red]*[/red]", "other": "*", "": " "}


def table(runs: Runs, rows: Sequence[Row], title: str) -> Table:
    """A line per metric: the first run's value, then every other run's with its lead over the
    first; ``*`` where the interval leaves out 0."""
    first, *others = runs
    shown = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    shown.add_column("held out")
    shown.add_column(escape(first), justify="right", no_wrap=True)
    for other in others:
        shown.add_column(escape(other), justify="right", no_wrap=True)
        shown.add_column("difference", justify="right", no_wrap=True)
    for row in rows:
        base = runs[first].get(row.metric)
        if base is None:
            continue
        cells = [_value(base)]
        for other in others:
            value = runs[other].get(row.metric)
            if value is None:
                cells += ["", ""]
                continue
            change = difference(base, value)
            cells += [_value(value), _change(change) + _MARKS[verdict(change, row)]]
        shown.add_row(escape(row.label), *cells)
    return shown


def as_json(runs: Runs, rows: Sequence[Row]) -> dict[str, Any]:
    """Every metric of every run, and every difference from the first run."""
    first, *others = runs
    labels = {row.metric: row for row in rows}
    return {
        "runs": {
            name: {
                metric: with_interval(one.value, one.interval()) for metric, one in metrics.items()
            }
            for name, metrics in runs.items()
        },
        "differences": {
            f"{other} - {first}": {
                metric: {
                    **with_interval(change[0], change[1:]),
                    "verdict": verdict(change, labels.get(metric, Row(metric, metric, "neither"))),
                }
                for metric, one in runs[other].items()
                if metric in runs[first]
                for change in [difference(runs[first][metric], one)]
            }
            for other in others
        },
    }


def _value(one: Resampled) -> str:
    return "undefined" if math.isnan(one.value) else f"{one.value:.3f}"


def _change(change: tuple[float, float, float]) -> str:
    if math.isnan(change[0]):
        return "undefined"
    return f"{change[0]:+.3f} \\[{change[1]:+.2f} {change[2]:+.2f}]"
