"""metrics.jsonl as panels, a line for every role."""

# S steps

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.evaluation.report.scan import LogEntry

_MOST_POINTS = 240
"""A panel is about as many pixels wide."""
_HELD_OUT = "held out: "


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    steps: list[float]
    """(S,); the middle of a stretch"""
    values: list[float]
    """(S,)"""


@dataclass(frozen=True)
class Panel:
    """One quantity over training steps."""

    title: str
    series: list[Series]
    stretch: int = 1
    """How many steps a value is the mean of."""
    dots: bool = False
    """Whether values are far between, so that each is marked and none is smoothed."""


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
    constant: list[tuple[str, float]] = []
    grouped = _grouped(metrics, roles)
    panels = Curves([], {}, constant)
    first = {f"reward/{role}" for role in roles} | main
    main_titles = {_title(name, roles)[0] for name in first}
    for title, by_role in grouped.items():
        if all(len(set(series.values)) == 1 for series in by_role.values()):
            constant += [
                (f"{title} {role}".strip(), series.values[0]) for role, series in by_role.items()
            ]
            continue
        panel = _panel(title, by_role)
        where = panels.main if title in main_titles else None
        (panels.more.setdefault(title.split("/")[0], []) if where is None else where).append(panel)
    return panels


def held_out(evaluations: Sequence[Mapping[str, Any]], roles: Sequence[str]) -> list[Panel]:
    """One panel a metric that changed, with a dot for every evaluation."""
    return [
        Panel(_HELD_OUT + title, [*by_role.values()], dots=True)
        for title, by_role in _grouped(evaluations, roles).items()
        if any(len(set(series.values)) > 1 for series in by_role.values())
    ]


def _grouped(
    lines: Sequence[Mapping[str, Any]], roles: Sequence[str]
) -> dict[str, dict[str, Series]]:
    """Title -> role -> what was logged; anything that is no finite number is left out."""
    grouped: dict[str, dict[str, Series]] = {}
    for line in lines:
        for name, value in line.items():
            if name != "step" and isinstance(value, int | float) and math.isfinite(value):
                title, role = _title(name, roles)
                series = grouped.setdefault(title, {}).setdefault(role, Series(role, [], []))
                series.steps.append(line["step"])
                series.values.append(float(value))
    return grouped


def tag_panel(entries: Sequence[LogEntry], names: Sequence[str]) -> Panel | None:
    """Share of each step's episodes that have each tag; None where none has any."""
    count: dict[int, int] = {}
    tagged: dict[str, dict[int, int]] = {name: {} for name in names}
    for entry in entries:
        count[entry.step] = count.get(entry.step, 0) + 1
        for name in entry.tags:
            tagged[name][entry.step] = tagged[name].get(entry.step, 0) + 1
    steps = sorted(count)
    shares = {
        name: Series(name, [*steps], [by_step.get(s, 0) / count[s] for s in steps])
        for name, by_step in tagged.items()
        if by_step
    }
    return _panel("share of episodes", shares) if shares else None


def _title(name: str, roles: Sequence[str]) -> tuple[str, str]:
    """(the metric's name without its role, the role): ``reward/alice/rescue`` is
    ``reward/rescue`` of alice."""
    first, *rest = name.split("/")
    if rest and rest[0] in roles:
        return "/".join([first, *rest[1:]]), rest[0]
    return name, ""


def _panel(title: str, by_role: Mapping[str, Series]) -> Panel:
    """Means over stretches of as many values each, at most as many as a panel can show."""
    size = max(1, *(-(-len(series.steps) // _MOST_POINTS) for series in by_role.values()))
    thin = [
        Series(role, _means(series.steps, size), _means(series.values, size))
        for role, series in by_role.items()
    ]
    return Panel(title, thin, size)


def _means(values: Sequence[float], size: int) -> list[float]:
    chunks = [values[start : start + size] for start in range(0, len(values), size)]
    return [math.fsum(chunk) / len(chunk) for chunk in chunks]
