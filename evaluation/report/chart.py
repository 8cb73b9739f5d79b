"""Panels as SVG: positions of their lines, dots and labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coterie.evaluation.report.curves import Panel, Series

WIDTH, HEIGHT = 360, 190
RIGHT, TOP, BOTTOM = 14, 10, 24
_DIGIT = 6.6
"""Width of a digit in the label of a tick."""
_TICKS = 4


@dataclass(frozen=True)
class Tick:
    """A line of the grid."""

    place: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class DrawnLine:
    """One series, drawn."""

    name: str
    colour: int
    """Index of one of the page's colours."""
    raw: str
    """Points of all values in SVG's form."""
    smooth: str
    """Points of the running mean."""
    first: str
    last: str
    """This and ``first`` are the smoothed values at both ends, for screen readers."""
    dots: list[tuple[float, float]]
    """Positions of the values that have a dot."""
    warmed_up: str = ""
    """The value after a warm-up, the second of two evaluations at the first step."""


@dataclass(frozen=True)
class Chart:
    """One panel, drawn."""

    title: str
    lines: list[DrawnLine]
    y_ticks: list[Tick]
    x_ticks: list[Tick]
    left: float
    """Position of the axis, right of its labels."""
    data: dict[str, Any]
    """Data for the page's text at the pointer."""


def chart(panel: Panel, colours: Sequence[str]) -> Chart:
    """Lay out a panel; a name in ``colours`` has the colour of its index there."""
    values = [value for series in panel.series for value in series.values]
    steps = [step for series in panel.series for step in series.steps]
    ticks = nice_ticks(min(values), max(values))
    labels = tick_labels(ticks)
    left = 12 + _DIGIT * max(map(len, labels))
    low, high = min(ticks[0], *values), max(ticks[-1], *values)
    # A value stands at the middle of its stretch, so the axis is half a stretch longer at each end.
    margin = (panel.stretch - 1) / 2
    first, last = min(steps) - margin, max(steps) + margin

    def x(step: float) -> float:
        return left + (WIDTH - left - RIGHT) * (step - first) / max(1, last - first)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / ((high - low) or 1)

    def points(series: Series, of: Sequence[float]) -> str:
        return " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in zip(series.steps, of))

    lines: list[DrawnLine] = []
    for index, series in enumerate(panel.series):
        smooth = series.values if panel.dots else running_mean(series.values)
        colour = colours.index(series.name) if series.name in colours else index
        warmed_up = panel.dots and len(series.steps) > 1 and series.steps[0] == series.steps[1]
        lines.append(
            DrawnLine(
                series.name,
                colour,
                points(series, series.values),
                points(series, smooth),
                figure(smooth[0]),
                figure(smooth[-1]),
                [(x(step), y(value)) for step, value in zip(series.steps, series.values)]
                if panel.dots
                else [],
                figure(smooth[1]) if warmed_up else "",
            )
        )
    return Chart(
        panel.title,
        lines,
        [Tick(y(tick), label) for tick, label in zip(ticks, labels)],
        [Tick(x(step), label, anchor) for step, label, anchor in _step_ticks(first, last)],
        left,
        {
            "first": first,
            "last": last,
            "margin": margin,
            "left": round(left, 1),
            "series": [
                {
                    "name": series.name,
                    "steps": series.steps,
                    "values": [float(f"{value:.4g}") for value in series.values],
                }
                for series in panel.series
            ],
        },
    )


def _step_ticks(first: float, last: float) -> list[tuple[float, str, str]]:
    """(step, label, text anchor) of both ends and of round numbers between."""
    ends = [(first, f"step {first:,.0f}", "start")]
    if last == first:
        return ends
    room = (last - first) / 5
    between = [
        (step, f"{step:,.0f}", "middle")
        for step in nice_ticks(first, last)
        if first + 1.5 * room < step < last - room and step == round(step)
    ]
    return [*ends, *between, (last, f"{last:,.0f}", "end")]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Format all ticks with as many decimals as the finest needs: 0.0, 0.5, 1.0."""
    step, largest = ticks[1] - ticks[0], max(map(abs, ticks))
    if step < 1e-4 or largest >= 1e6:
        return [f"{tick:.3g}" for tick in ticks]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    # Adding 0 turns -0.0 into 0.0.
    return [f"{round(tick, decimals) + 0:,.{decimals}f}" for tick in ticks]


def running_mean(values: Sequence[float]) -> list[float]:
    """Means over a window of a tenth of the run around each value, narrower towards the ends."""
    half = len(values) // 20
    means: list[float] = []
    for index in range(len(values)):
        reach = min(half, index, len(values) - 1 - index)
        window = values[index - reach : index + reach + 1]
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
    return [multiple * step for multiple in range(first, last + 1)]


def figure(value: float) -> str:
    """Format with three significant digits: 0.25, 1,200, 3e-05."""
    size = abs(value)
    if size >= 10_000 or 0 < size < 0.001:
        return f"{value:.2g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
