"""metrics.jsonl as panels, a line for every role; and where their marks stand in an SVG."""

# S steps

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.evaluation.report.scan import TAG_NAMES, Entry

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
        panel = Panel(title, [_thin(role, series) for role, series in by_role.items()])
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
        _thin(name, Series(name, steps, [by_step.get(s, 0) / count[s] for s in steps]))
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


def _thin(name: str, series: Series) -> Series:
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


WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 24
_TICKS = 4


@dataclass(frozen=True)
class Tick:
    """A line of the grid."""

    place: float
    label: str


@dataclass(frozen=True)
class Line:
    """One series, drawn."""

    name: str
    colour: int
    """Which of the page's series colours."""
    raw: str
    """Points of every value, as SVG has them."""
    smooth: str
    """Points of the running mean."""
    first: str
    last: str
    """The smoothed values at both ends, for people who read instead of looking."""


@dataclass(frozen=True)
class Chart:
    """One panel, drawn."""

    title: str
    lines: list[Line]
    y_ticks: list[Tick]
    x_ticks: list[Tick]


def chart(panel: Panel, colours: Sequence[str]) -> Chart:
    """Scale a panel to its place; ``colours`` lists names that have a colour of their own."""
    values = [value for series in panel.series for value in series.values]
    steps = [step for series in panel.series for step in series.steps]
    ticks = nice_ticks(min(values), max(values))
    low, high = min(ticks[0], *values), max(ticks[-1], *values)
    first, last = min(steps), max(steps)

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (step - first) / max(1, last - first)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / ((high - low) or 1)

    def points(series: Series, of: Sequence[float]) -> str:
        return " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in zip(series.steps, of))

    lines: list[Line] = []
    for place, series in enumerate(panel.series):
        smooth = running_mean(series.values)
        colour = colours.index(series.name) if series.name in colours else place
        lines.append(
            Line(
                series.name,
                colour,
                points(series, series.values),
                points(series, smooth),
                figure(smooth[0]),
                figure(smooth[-1]),
            )
        )
    ends = [first] if first == last else [first, last]
    return Chart(
        panel.title,
        lines,
        [Tick(y(tick), figure(tick)) for tick in ticks],
        [Tick(x(step), f"step {step}" if step == first else str(step)) for step in ends],
    )


def running_mean(values: Sequence[float]) -> list[float]:
    """Means over a window of a tenth of the run around each value, narrower towards the ends."""
    half = len(values) // 20
    means: list[float] = []
    for place in range(len(values)):
        reach = min(half, place, len(values) - 1 - place)
        window = values[place - reach : place + reach + 1]
        means.append(math.fsum(window) / len(window))
    return means


def nice_ticks(low: float, high: float) -> list[float]:
    """Round numbers from at or below ``low`` to at or above ``high``: steps of 1, 2 or 5."""
    span = (high - low) or abs(high) or 1.0
    rough = span / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first = math.floor(low / step + 1e-9)
    last = max(first + 1, math.ceil(high / step - 1e-9))
    return [place * step for place in range(first, last + 1)]


def figure(value: float) -> str:
    """Three digits, without noise: 0.25, 1,200, 3e-05."""
    size = abs(value)
    if size >= 10_000 or 0 < size < 0.001:
        return f"{value:.2g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
