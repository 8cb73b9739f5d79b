"""The table that a run ends with: before against after."""

import math
from collections.abc import Mapping, Sequence

from rich.table import Table

from evaluation.evaluation import Resampled, Row
from evaluation.metrics.bootstrap import interval


def comparison(
    before: Mapping[str, Resampled], after: Mapping[str, Resampled], rows: Sequence[Row]
) -> Table:
    """One line per row: value with its 95 % interval before, after, and their difference.

    The difference is paired by problem. A change whose interval leaves out zero is coloured: green
    for better, red for worse.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("held out, cold")
    for heading in ("before", "after", "change"):
        table.add_column(heading, justify="right")
    for row in rows:
        if row.metric not in after:
            continue
        first, last = before.get(row.metric), after[row.metric]
        table.add_row(
            row.label,
            _cell(first) if first else "",
            _cell(last),
            _change(first, last, row) if first else "",
        )
    return table


def _cell(measured: Resampled) -> str:
    if math.isnan(measured.value):
        return f"undefined (n={measured.count})"
    low, high = measured.interval()
    return f"{_figure(measured.value, 3)} \\[{_figure(low)} {_figure(high)}]"


def _change(first: Resampled, last: Resampled, row: Row) -> str:
    difference = last.value - first.value
    if math.isnan(difference):
        return ""
    low, high = interval(last.replicates - first.replicates)
    text = f"{difference:+.3f} \\[{low:+.2f} {high:+.2f}]"
    if row.better == "neither" or low <= 0 <= high:
        return text
    good = (difference > 0) == (row.better == "higher")
    return f"[green]{text}[/green]" if good else f"[red]{text}[/red]"


def _figure(value: float, decimals: int = 2) -> str:
    """Without the leading zero: .913, 1.000, -.02."""
    text = f"{value:.{decimals}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
