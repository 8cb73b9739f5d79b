"""Where the marks of a panel stand: numbers for an SVG that the template draws."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from coterie.evaluation.report.curves import Panel, Series

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
