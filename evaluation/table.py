"""The table that a run ends with: before against after."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from coterie.evaluation.evaluation import Resampled, Row, difference, verdict
from coterie.evaluation.numbers import without_zero

HEADINGS = ("held out, cold", "before", "after", "change")
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


def lines(
    before: Mapping[str, Resampled], after: Mapping[str, Resampled], rows: Sequence[Row]
) -> list[Line]:
    """Value with its 95 % interval before, after, and their difference, which is paired by problem;
    for the rows that were measured at all."""
    found: list[Line] = []
    for row in rows:
        first, last = before.get(row.metric), after.get(row.metric)
        if first or last:
            change = _change(first, last, row) if first and last else ("", "")
            found.append(Line(row.label, _cell(first), _cell(last), *change))
    return found


def comparison(
    before: Mapping[str, Resampled], after: Mapping[str, Resampled], rows: Sequence[Row]
) -> Table:
    """The lines for a terminal: a change whose interval leaves out zero is green for better, red
    for worse."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if place else "left")
    for line in lines(before, after, rows):
        numbers = [_markup(cell) for cell in (line.before, line.after, line.change)]
        if colour := _COLOURS.get(line.verdict):
            numbers[-1] = f"[{colour}]{numbers[-1]}[/{colour}]"
        table.add_row(_markup(line.label), *numbers)
    return table


def _markup(cell: str) -> str:
    """Brackets mean brackets."""
    return cell.replace("[", "\\[")


def _cell(measured: Resampled | None) -> str:
    if measured is None:
        return ""
    if math.isnan(measured.value):
        return f"undefined (n={measured.count})"
    low, high = measured.interval()
    return f"{without_zero(measured.value, 3)} [{without_zero(low)} {without_zero(high)}]"


def _change(first: Resampled, last: Resampled, row: Row) -> tuple[str, str]:
    """(text, verdict)."""
    change = difference(first, last)
    if math.isnan(change.value):
        return "", ""
    low, high = change.interval()
    found = verdict(change, row)
    # A row that says nothing of better and worse has no colour.
    return f"{change.value:+.3f} [{low:+.2f} {high:+.2f}]", found if found in _COLOURS else ""
