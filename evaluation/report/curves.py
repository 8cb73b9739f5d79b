"""metrics.jsonl as panels: one quantity each, with a line for every role that has it."""

# S steps

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.evaluation.report.scan import Entry
from coterie.evaluation.report.tags import TAG_NAMES

_MOST_POINTS = 240
"""A panel is about as many pixels wide."""


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    steps: list[int]
    """(S,)"""
    values: list[float]
    """(S,)"""


@dataclass(frozen=True)
class Panel:
    """One quantity over training steps."""

    title: str
    series: list[Series]


@dataclass(frozen=True)
class Curves:
    """All panels of a run."""

    main: list[Panel]
    """What was paid, and what the progress bar shows."""
    more: dict[str, list[Panel]]
    """Everything else, by the first part of its name."""
    constant: list[tuple[str, float]]
    """Quantities that never changed, and their value."""


def curves(metrics: Sequence[Mapping[str, Any]], roles: Sequence[str], main: set[str]) -> Curves:
    """Sort every metric of the log into panels; ``main`` names those to be shown first."""
    columns: dict[str, Series] = {}
    for line in metrics:
        for name, value in line.items():
            if name != "step" and isinstance(value, int | float) and math.isfinite(value):
                series = columns.setdefault(name, Series("", [], []))
                series.steps.append(line["step"])
                series.values.append(float(value))
    grouped: dict[str, dict[str, Series]] = {}
    constant: list[tuple[str, float]] = []
    for name, series in columns.items():
        title, role = _title(name, roles)
        grouped.setdefault(title, {})[role] = series
    found = Curves([], {}, constant)
    first = {f"reward/{role}" for role in roles} | main
    main_titles = {_title(name, roles)[0] for name in first}
    for title, by_role in grouped.items():
        if all(len(set(series.values)) == 1 for series in by_role.values()):
            constant += [
                (f"{title} {role}".strip(), series.values[0]) for role, series in by_role.items()
            ]
            continue
        panel = Panel(title, [_thinned(role, series) for role, series in by_role.items()])
        where = found.main if title in main_titles else None
        (found.more.setdefault(title.split("/")[0], []) if where is None else where).append(panel)
    return found


def tag_panel(entries: Sequence[Entry]) -> Panel | None:
    """Share of each step's episodes that have each tag; None where none has any."""
    count: dict[int, int] = {}
    tagged: dict[str, dict[int, int]] = {name: {} for name in TAG_NAMES}
    for entry in entries:
        count[entry.step] = count.get(entry.step, 0) + 1
        for name in entry.tags:
            tagged[name][entry.step] = tagged[name].get(entry.step, 0) + 1
    steps = sorted(count)
    series = [
        _thinned(name, Series(name, steps, [by_step.get(s, 0) / count[s] for s in steps]))
        for name, by_step in tagged.items()
        if by_step
    ]
    return Panel("share of episodes", series) if series else None


def _title(name: str, roles: Sequence[str]) -> tuple[str, str]:
    """(the metric's name without its role, the role): ``reward/alice/rescue`` is
    ``reward/rescue`` of alice."""
    first, *rest = name.split("/")
    if rest and rest[0] in roles:
        return "/".join([first, *rest[1:]]), rest[0]
    return name, ""


def _thinned(name: str, series: Series) -> Series:
    """Means over equal stretches, at most as many as a panel can show."""
    size = -(-len(series.steps) // _MOST_POINTS)
    if size <= 1:
        return Series(name, series.steps, series.values)
    starts = range(0, len(series.steps), size)
    chunks = [series.values[start : start + size] for start in starts]
    return Series(
        name,
        [series.steps[min(start + size, len(series.steps)) - 1] for start in starts],
        [math.fsum(chunk) / len(chunk) for chunk in chunks],
    )
