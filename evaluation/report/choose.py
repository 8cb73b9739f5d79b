"""Which episodes of a long run the page holds."""

from collections.abc import Sequence
from typing import Literal, TypeVar, get_args

from coterie.evaluation.report.scan import Entry

T = TypeVar("T")

Which = Literal["spaced", "first", "last"]
WHICH: tuple[Which, ...] = get_args(Which)


def choose(
    entries: Sequence[Entry], count: int, which: Which = "spaced", only: str | None = None
) -> list[Entry]:
    """At most ``count`` entries in the log's order: the first, the last, or evenly spaced over the
    run with both ends; with ``only``, of those that have that tag."""
    wanted = [entry for entry in entries if only is None or only in entry.tags]
    if which == "first":
        return wanted[:count]
    if which == "last":
        return wanted[max(0, len(wanted) - count) :]
    return spaced(wanted, count)


def spaced(items: Sequence[T], count: int) -> list[T]:
    """At most ``count`` of ``items``, evenly spaced: 3 of 0..9 are 0, 4 and 9."""
    if count >= len(items):
        return list(items)
    if count < 2:
        return list(items[:count])
    # Whole numbers: a product over floats may land just below the place that is meant.
    return [items[place * (len(items) - 1) // (count - 1)] for place in range(count)]
