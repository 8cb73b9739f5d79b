"""Output of every comparison: tables for a terminal, JSON for scripts."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from coterie.evaluation.table import as_json, interval_text, without_zero
from coterie.training.run.durable_files import write_or_keep

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


def make_table(
    title: str, first: str, headings: Iterable[str], lines: Iterable[tuple[str, Iterable[str]]]
) -> Table:
    """A table with one line per system: its label and a cell per heading. Title and headings are
    plain text, since they contain names from the user; labels and cells may contain markup."""
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


def with_legend(table: Table, *lines: str) -> Table:
    """Put the meanings of the headings below ``table``."""
    table.caption, table.caption_justify = "\n".join(lines), "left"
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
    """Tables of all rows with at most ``wide`` columns each, to fit 80 characters."""
    for start in range(0, len(columns), wide):
        part = columns[start : start + wide]
        headings = [column if isinstance(column, str) else " + ".join(column) for column in part]
        lines = [(escape(row), [cell(row, column) for column in part]) for row in rows]
        yield make_table("" if start else title, first, headings, lines)


def short_label(label: str, limit: int = _LABEL) -> str:
    """``label`` cut to ``limit`` characters, with brackets escaped from markup."""
    return escape(label if len(label) <= limit else f"{label[: limit - 1]}…")


def figure_cell(value: float | None, decimals: int = 3, sign: str = "") -> str:
    """Format a share without its leading zero: .913, 1.000, +.02; a dash if undefined."""
    if value is None or math.isnan(value):
        return "–"
    return without_zero(value, decimals, sign)


def interval_cell(figure: Figure, sign: str = "") -> str:
    """The interval of ``figure``, its bracket escaped from markup."""
    if math.isnan(figure.low):
        return "\\[– –]"
    return f"\\{interval_text(figure.value, figure.low, figure.high, sign)}"


def figure_with_interval(figure: Figure | None, sign: str = "") -> str:
    """The value and its interval; empty for None."""
    if figure is None or math.isnan(figure.value):
        return ""
    return f"{figure_cell(figure.value, 3, sign)} {interval_cell(figure, sign)}"


def mean_over_seeds(figure: Figure, sign: str = "") -> str:
    """A mean and the half width of its interval; a single seed has no interval."""
    if math.isnan(figure.value):
        return "undefined"
    if math.isnan(figure.low):
        return f"{figure.value:{sign}.3f}"
    return f"{figure.value:{sign}.3f} ± {figure.high - figure.value:.3f}"


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write ``content`` (figures, arrays, dataclasses of numbers) atomically.

    Raises:
        UserError: the file cannot be written; the message says where the content is kept.
    """
    write_or_keep(path, json.dumps(as_json(content), indent=1), "--out")
    return path
