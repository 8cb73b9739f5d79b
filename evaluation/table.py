"""The table that a run ends with: before against after.

A column is a heading in :data:`HEADINGS`, a field of :class:`Line` that :func:`lines` fills, and a
cell in :func:`comparison`. The rows are ``Evaluation.rows`` of the environment.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from rich.table import Table

from coterie.evaluation.evaluation import Resampled, Row, difference, verdict
from coterie.evaluation.metrics.intervals import Estimate


def plain_number(value: float) -> float | None:
    """JSON has no NaN and no infinity: what is undefined is null. Rounded, for a reader."""
    return round(float(value), 6) if math.isfinite(value) else None


class Exact(float):
    """A number that is not rounded in JSON: a threshold just above a confidence is not it."""


def as_json(value: Any) -> Any:
    """``value`` as JSON data: a figure with its 95 % interval, a dataclass by its fields, arrays
    as lists, numbers by :func:`plain_number`."""
    if isinstance(value, Resampled):
        return {"value": plain_number(value.value), "interval": as_json(value.interval())}
    if isinstance(value, Estimate):
        return {"mean": plain_number(value.value), "interval": as_json((value.low, value.high))}
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: as_json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return float(value) if isinstance(value, Exact) else plain_number(value)
    return str(value) if isinstance(value, Path) else value


def without_zero(value: float, decimals: int = 2, sign: str = "") -> str:
    """A number as text without its leading zero: .913, 1.000, -.02; with ``sign`` ``+`` a positive
    number shows its sign."""
    text = f"{value:{sign}.{decimals}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def interval_text(value: float, low: float, high: float, sign: str = "") -> str:
    """The interval ``[.51 .59]`` of ``value``, with two decimals: with three, as the value has,
    where two would leave the value outside; ``sign`` as of :func:`without_zero`."""
    inside = round(low, 2) <= round(value, 3) <= round(high, 2)
    decimals = 2 if inside or math.isnan(value) else 3
    return f"[{without_zero(low, decimals, sign)} {without_zero(high, decimals, sign)}]"


HEADINGS = ("held out, cold", "before", "after", "change")
WARMED_UP = "warmed up"
_COLOURS = {"better": "green", "worse": "red"}


@dataclass(frozen=True)
class Line:
    """One line of the table, as text."""

    label: str
    before: str
    after: str
    change: str
    verdict: str
    """``better`` or ``worse`` where the interval of the change leaves out zero; else empty."""
    metric: str = ""
    """What is measured, by its name."""
    warmed_up: str = ""
    """After the warm-up, where there was one: the change is the one from there."""
    before_without_interval: str = ""


def lines(
    before: Mapping[str, Resampled],
    after: Mapping[str, Resampled],
    rows: Sequence[Row],
    warmed_up: Mapping[str, Resampled] = MappingProxyType({}),
) -> list[Line]:
    """Value with its 95 % interval before, after, and their difference, which is paired by problem;
    for the rows that were measured at all.

    Args:
        before: metric -> value before training.
        after: metric -> value after it.
        rows: metrics of the table, in order.
        warmed_up: metric -> value after the warm-up, from where the difference counts then.
    """
    table_lines: list[Line] = []
    for row in rows:
        first, last = before.get(row.metric), after.get(row.metric)
        since = (warmed_up or before).get(row.metric)
        if first or last:
            change = _change(since, last, row) if since and last else ("", "")
            table_lines.append(
                Line(
                    row.label,
                    _cell(first),
                    _cell(last),
                    *change,
                    row.metric,
                    _cell(warmed_up.get(row.metric)),
                    _value(first),
                )
            )
    return table_lines


def comparison(
    before: Mapping[str, Resampled],
    after: Mapping[str, Resampled],
    rows: Sequence[Row],
    alone: Mapping[str, float] = MappingProxyType({}),
    warmed_up: Mapping[str, Resampled] = MappingProxyType({}),
) -> Table:
    """The lines for a terminal: a change whose interval leaves out zero is green for better, red
    for worse.

    Args:
        before: metric -> value before training; without its interval where there was a warm-up.
        after: metric -> value after it.
        rows: metrics of the table, in order.
        alone: metric -> a baseline's value after training, in a last column.
        warmed_up: metric -> value after the warm-up, from where the change counts then.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    headings = [*HEADINGS, *(["alone"] if alone else [])]
    if warmed_up:
        headings[2:2] = [WARMED_UP]
    for place, heading in enumerate(headings):
        # In a narrow terminal it is the labels that break, never the numbers.
        table.add_column(heading, justify="right" if place else "left", no_wrap=place > 0)
    for line in lines(before, after, rows, warmed_up):
        cells = [line.before, line.after, line.change]
        if warmed_up:  # one more column has to fit the same 80 characters
            cells[:1] = [line.before_without_interval, line.warmed_up]
        numbers = [_markup(cell) for cell in cells]
        if colour := _COLOURS.get(line.verdict):
            numbers[-1] = f"[{colour}]{numbers[-1]}[/{colour}]"
        if alone:
            numbers.append(without_zero(alone[line.metric], 3) if line.metric in alone else "")
        table.add_row(_markup(line.label), *numbers)
    return table


def _markup(cell: str) -> str:
    """Brackets mean brackets."""
    return cell.replace("[", "\\[")


def _value(measured: Resampled | None) -> str:
    if measured is None:
        return ""
    return "undefined" if math.isnan(measured.value) else without_zero(measured.value, 3)


def _cell(measured: Resampled | None) -> str:
    if measured is None:
        return ""
    if math.isnan(measured.value):
        return f"undefined (n={measured.count})"
    return f"{_value(measured)} {interval_text(measured.value, *measured.interval())}"


def _change(first: Resampled, last: Resampled, row: Row) -> tuple[str, str]:
    """(text, verdict)."""
    change = difference(first, last)
    if math.isnan(change.value):
        return "", ""
    better_or_worse = verdict(change, row)
    # A row that says nothing of better and worse has no colour.
    interval = interval_text(change.value, *change.interval(), "+")
    text = f"{without_zero(change.value, 3, '+')} {interval}"
    return text, better_or_worse if better_or_worse in _COLOURS else ""
