"""Training curves: the metrics of a run's log as panels, with a line for every role."""

# S steps

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.evaluation.evaluation import SETS
from coterie.evaluation.report.scan import LogEntry

_MOST_POINTS = 240
"""A panel is about this many pixels wide."""
_HELD_OUT = "held out: "


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    steps: list[float]
    """(S,); each is the middle of a stretch."""
    values: list[float]
    """(S,)"""


@dataclass(frozen=True)
class Panel:
    """One quantity over training steps."""

    title: str
    series: list[Series]
    stretch: int = 1
    """Number of steps over which each value is a mean."""
    dots: bool = False
    """Whether values are few, so that each has a dot and none is smoothed."""


@dataclass(frozen=True)
class Curves:
    """All panels of a run."""

    main: list[Panel]
    """Rewards, and the metrics of the progress bar."""
    more: dict[str, list[Panel]]
    """Everything else, by the first part of its name."""
    constant: list[tuple[str, float]]
    """(name, value) of metrics that never changed."""


def curves(metrics: Sequence[Mapping[str, Any]], roles: Sequence[str], main: set[str]) -> Curves:
    """Sort every metric of the log into panels; those in ``main`` come first."""
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
        section = panels.main
        if title not in main_titles:
            section = panels.more.setdefault(title.split("/")[0], [])
        section.append(_panel(title, by_role))
    return panels


def held_out(evaluations: Sequence[Mapping[str, Any]], roles: Sequence[str]) -> list[Panel]:
    """A panel for every metric that changed, with a dot for every evaluation."""
    return [
        Panel(_HELD_OUT + title, [*by_role.values()], dots=True)
        for title, by_role in _grouped(evaluations, roles).items()
        if any(len(set(series.values)) > 1 for series in by_role.values())
    ]


def _grouped(
    lines: Sequence[Mapping[str, Any]], roles: Sequence[str]
) -> dict[str, dict[str, Series]]:
    """Title -> role -> logged values; all but finite numbers are left out."""
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
    """Share of each step's episodes with each tag; None if no episode has a tag."""
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
    """(name without role, role): ``reward/alice/rescue`` is ``reward/rescue`` of alice, and
    ``sets/gsm8k/pass@1/alice`` is ``pass@1, gsm8k``."""
    first, *rest = name.split("/")
    if first == SETS and len(rest) > 1:
        title, role = _title("/".join(rest[1:]), roles)
        return f"{title}, {rest[0]}", role
    if rest and rest[0] in roles:
        return "/".join([first, *rest[1:]]), rest[0]
    return name, ""


def _panel(title: str, by_role: Mapping[str, Series]) -> Panel:
    """Average over equal stretches, so that a panel has at most as many values as pixels."""
    size = max(1, *(-(-len(series.steps) // _MOST_POINTS) for series in by_role.values()))
    thin = [
        Series(role, _means(series.steps, size), _means(series.values, size))
        for role, series in by_role.items()
    ]
    return Panel(title, thin, size)


def _means(values: Sequence[float], size: int) -> list[float]:
    chunks = [values[start : start + size] for start in range(0, len(values), size)]
    return [math.fsum(chunk) / len(chunk) for chunk in chunks]
