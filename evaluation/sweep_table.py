"""Rows of a paper's table over seeds: mean and Student's interval, row by row."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from evaluation.metrics.seeds import t_interval
from evaluation.numbers import plain_number, without_zero

_WIDE = 4

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""Row -> column -> what each seed gave; NaN where it is undefined."""


def tables(values: Values, title: str) -> list[Table]:
    """A line per row; four columns to a table, so that it fits into 80 columns of text."""
    columns = list(dict.fromkeys(column for row in values.values() for column in row))
    shown: list[Table] = []
    for start in range(0, len(columns), _WIDE):
        part = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
        part.title = "" if start else title
        part.add_column("± 95 % (t)", min_width=12, overflow="fold")
        for column in columns[start : start + _WIDE]:
            part.add_column(column, justify="right", no_wrap=True)
        for label, row in values.items():
            cells = [_cell(row.get(column, ())) for column in columns[start : start + _WIDE]]
            part.add_row(escape(label), *cells)
        shown.append(part)
    return shown


def as_json(values: Values) -> dict[str, Any]:
    """Every value, mean and interval."""
    content: dict[str, Any] = {}
    for label, row in values.items():
        content[label] = {}
        for column, numbers in row.items():
            found = t_interval(numbers)
            content[label][column] = {
                "values": [plain_number(number) for number in numbers],
                "mean": plain_number(found.value),
                "interval": [plain_number(found.low), plain_number(found.high)],
            }
    return content


def _cell(numbers: Sequence[float]) -> str:
    found = t_interval(numbers)
    if math.isnan(found.value):
        return "–"
    text = _figure(found.value)
    return text if math.isnan(found.low) else f"{text} ± {_figure(found.high - found.value)}"


def _figure(value: float) -> str:
    """Shares without the leading zero (.913), costs without decimals."""
    if abs(value) >= 10:
        return f"{value:.0f}"
    return without_zero(value, 3)
