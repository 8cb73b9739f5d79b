"""What all tables share: numbers and intervals as text, and the layout for a terminal. The table
that a run ends with is in :mod:`coterie.evaluation.run_table`."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from coterie.evaluation.metrics.intervals import Estimate

_LABEL = 32

T = TypeVar("T", str, tuple[str, ...])


class Figure(Protocol):
    """A value with its 95 % interval."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def without_zero(value: float, decimals: int = 2, sign: str = "") -> str:
    """Format a number without its leading zero: .913, 1.000, -.02.

    Args:
        value: the number.
        decimals: digits after the point.
        sign: ``+`` also shows the sign of a positive number.
    """
    text = f"{value:{sign}.{decimals}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def interval_text(value: float, low: float, high: float, sign: str = "") -> str:
    """Format the interval of ``value`` with two decimals: ``[.51 .59]``.

    The value is printed with three decimals. Where two would put it outside of its interval, the
    interval has three as well. ``sign`` is that of :func:`without_zero`.
    """
    inside = round(low, 2) <= round(value, 3) <= round(high, 2)
    decimals = 2 if inside or math.isnan(value) else 3
    return f"[{without_zero(low, decimals, sign)} {without_zero(high, decimals, sign)}]"


def value_with_interval(value: float, low: float, high: float, sign: str = "") -> str:
    """Format a value and its interval, if there is one, as plain text: ``.553 [.51 .59]``."""
    if math.isnan(low):
        return without_zero(value, 3, sign)
    return f"{without_zero(value, 3, sign)} {interval_text(value, low, high, sign)}"


def figure_cell(value: float | None, decimals: int = 3, sign: str = "") -> str:
    """Format a share as :func:`without_zero`; a dash if it is undefined."""
    if value is None or math.isnan(value):
        return "–"
    return without_zero(value, decimals, sign)


def interval_cell(figure: Figure, sign: str = "") -> str:
    """Format the interval of ``figure``, with its bracket escaped from markup."""
    if math.isnan(figure.low):
        return "\\[– –]"
    return f"\\{interval_text(figure.value, figure.low, figure.high, sign)}"


def figure_with_interval(figure: Figure | None, sign: str = "") -> str:
    """Format a figure and its interval as markup; empty if there is none."""
    if figure is None or math.isnan(figure.value):
        return ""
    return f"{figure_cell(figure.value, 3, sign)} {interval_cell(figure, sign)}"


def mean_over_seeds(mean: Estimate, sign: str = "", *, of: int = 0) -> str:
    """Format a mean and the half width of its interval; a single seed has no interval.

    Args:
        mean: the mean over seeds.
        sign: ``+`` also shows the sign of a positive number.
        of: number of seeds; if the mean is of fewer, it says so: ``.500 ± .020 (4 of 5)``.
    """
    if math.isnan(mean.value):
        return "undefined"
    half = "" if math.isnan(mean.low) else f" ± {mean.high - mean.value:.3f}"
    return f"{mean.value:{sign}.3f}{half}{of_seeds(mean, of)}"


def of_seeds(mean: Estimate, of: int) -> str:
    """How many of the seeds a mean is of; empty if it is of all."""
    return f" ({mean.count} of {of})" if mean.count < of else ""


def short_label(label: str, limit: int = _LABEL) -> str:
    """Cut ``label`` to ``limit`` characters and escape its brackets from markup."""
    return escape(label if len(label) <= limit else f"{label[: limit - 1]}…")


def make_table(
    title: str, first: str, headings: Iterable[str], lines: Iterable[tuple[str, Iterable[str]]]
) -> Table:
    """A table with one line per system.

    Args:
        title: plain text, as it may contain names from the user.
        first: heading of the labels, plain text.
        headings: headings of the cells, plain text.
        lines: (label, cells) of each line, as markup.
    """
    shown = escape(title)
    table = Table(box=None, pad_edge=False, header_style="bold", title=shown, title_justify="left")
    lines = list(lines)
    words = [word for label, _ in lines for word in Text.from_markup(label).plain.split()]
    longest = max(map(len, (*words, *first.split())), default=1)
    # In a narrow terminal labels wrap between words; numbers never wrap.
    table.add_column(escape(first), overflow="fold", min_width=min(longest, _LABEL))
    for heading in headings:
        table.add_column(escape(heading), justify="right", no_wrap=True)
    for label, cells in lines:
        table.add_row(label, *cells)
    return table


def make_tables(
    title: str,
    first: str,
    columns: Sequence[T],
    rows: Sequence[str],
    cell: Callable[[str, T], str],
    *,
    wide: int,
) -> Iterator[Table]:
    """Tables of all rows with at most ``wide`` columns each, to fit 80 characters.

    Args:
        title: title of the first table.
        first: heading of the labels.
        columns: names of the columns; the parts of a tuple are joined by ``+``.
        rows: labels of the rows, plain text.
        cell: (row, column) -> markup.
        wide: columns of a table.
    """
    for start in range(0, len(columns), wide):
        part = columns[start : start + wide]
        headings = [column if isinstance(column, str) else " + ".join(column) for column in part]
        lines = [(escape(row), [cell(row, column) for column in part]) for row in rows]
        yield make_table("" if start else title, first, headings, lines)


def with_legend(table: Table, *lines: str) -> Table:
    """Put the meanings of the headings below ``table``."""
    table.caption, table.caption_justify = "\n".join(lines), "left"
    return table
