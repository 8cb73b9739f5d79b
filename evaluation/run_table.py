"""The table that a run ends with: before against after.

A column is a heading in :data:`HEADINGS`, a field of :class:`Line` that :func:`lines` fills, and a
cell in :func:`comparison`; the model card (``extras/ops/model_card.py``) prints the same columns.
The rows are ``Evaluation.rows`` of the environment.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rich.markup import escape
from rich.table import Table

from coterie.evaluation.evaluation import Resampled, Row, difference, verdict
from coterie.evaluation.table import value_with_interval, without_zero

HEADINGS = ("held out", "before", "after", "change")
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
    """``better`` or ``worse`` where the interval of the change excludes zero and there are enough
    problems; else empty."""
    metric: str = ""
    """Name of the metric."""
    warmed_up: str = ""
    """The value after a warm-up, from which the change then counts."""
    before_without_interval: str = ""


def lines(
    before: Mapping[str, Resampled],
    after: Mapping[str, Resampled],
    rows: Sequence[Row],
    warmed_up: Mapping[str, Resampled] = MappingProxyType({}),
) -> list[Line]:
    """Value with its 95 % interval before, after, and their difference, paired by problem; rows
    that were not measured are left out.

    Args:
        before: metric -> value before training.
        after: metric -> value after it.
        rows: metrics of the table, in order.
        warmed_up: metric -> value after the warm-up, from which the difference then counts.
    """
    table_lines: list[Line] = []
    for row in rows:
        first, last = before.get(row.metric), after.get(row.metric)
        if first is None and last is None:
            continue
        since, change, judged = (warmed_up or before).get(row.metric), "", ""
        if since and last:
            change, judged = _change(since, last, row)
        table_lines.append(
            Line(
                label=row.label,
                before=_cell(first),
                after=_cell(last),
                change=change,
                verdict=judged,
                metric=row.metric,
                warmed_up=_cell(warmed_up.get(row.metric)),
                before_without_interval=_value(first),
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
    """The lines for a terminal; a change whose interval excludes zero is green if it is better,
    red if it is worse.

    Args:
        before: metric -> value before training; shown without interval where there is a warm-up.
        after: metric -> value after it.
        rows: metrics of the table, in order.
        alone: metric -> a baseline's value after training, in a last column.
        warmed_up: metric -> value after the warm-up, from which the change then counts.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    headings = [*HEADINGS, *(["alone"] if alone else [])]
    if warmed_up:
        headings[2:2] = [WARMED_UP]
    for index, heading in enumerate(headings):
        # In a narrow terminal labels break, never numbers.
        table.add_column(heading, justify="right" if index else "left", no_wrap=index > 0)
    for line in lines(before, after, rows, warmed_up):
        cells = [line.before, line.after, line.change]
        if warmed_up:  # one more column has to fit the same 80 characters
            cells[:1] = [line.before_without_interval, line.warmed_up]
        numbers = [escape(cell) for cell in cells]
        if colour := _COLOURS.get(line.verdict):
            numbers[-1] = f"[{colour}]{numbers[-1]}[/{colour}]"
        if alone:
            numbers.append(without_zero(alone[line.metric], 3) if line.metric in alone else "")
        table.add_row(escape(line.label), *numbers)
    return table


def _value(measured: Resampled | None) -> str:
    if measured is None:
        return ""
    return "undefined" if math.isnan(measured.value) else without_zero(measured.value, 3)


def _cell(measured: Resampled | None) -> str:
    if measured is None:
        return ""
    if math.isnan(measured.value):
        return f"undefined (n={measured.count})"
    return value_with_interval(measured.value, *measured.interval())


def _change(first: Resampled, last: Resampled, row: Row) -> tuple[str, str]:
    """(text, verdict)."""
    change = difference(first, last)
    if math.isnan(change.value):
        return "", ""
    better_or_worse = verdict(change, row)
    text = value_with_interval(change.value, *change.interval(), "+")
    # A row without a better direction has no colour.
    return text, better_or_worse if better_or_worse in _COLOURS else ""
