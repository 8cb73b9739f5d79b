"""The number of evaluation problems before a set is read, for plans."""

from collections.abc import Sequence

from coterie.datatypes import read_options
from coterie.problems.hub import HUB_SETS
from coterie.problems.local_copies import find_copy
from coterie.problems.split import HELD_OUT


def measured(sets: Sequence[str], held_out: int | None) -> int | None:
    """Return the number of evaluation problems in ``sets``; None if a set must be read first.

    Args:
        sets: names as for ``--problems.eval``, or the training set.
        held_out: most problems of each set; None: all of a set with an evaluation split.
    """
    sizes = [_size(text, held_out) for text in sets]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _size(text: str, held_out: int | None) -> int | None:
    name = text.partition("?")[0]
    if name not in HUB_SETS:
        # Generators are endless; the length of a file is unknown before it is read.
        is_file = "." in name or "/" in name or ":" in name
        return held_out if is_file else held_out or HELD_OUT
    hub_set, split = HUB_SETS[name], read_options(text)[1].get("split")
    copy = find_copy(hub_set, name, split or hub_set.eval)
    if copy is not None and copy.whole and hub_set.train not in (None, hub_set.eval):
        return None  # a part of the file is held out, whose size the hub does not tell
    rows = hub_set.rows if split in (None, hub_set.eval) else None
    if split is None and hub_set.train == hub_set.eval:
        # One split serves both.
        if hub_set.train_percent is None:
            return held_out or HELD_OUT
        rows = rows and rows - rows * hub_set.train_percent // 100
    return rows if rows is None or held_out is None else min(rows, held_out)
