"""The number of evaluation problems before a set is read, for plans."""

from collections.abc import Sequence

from coterie.problems.hub import HUB_SETS
from coterie.problems.local_copies import find_copy
from coterie.problems.split import HELD_OUT

# Published number of rows of each split.
_ROWS = {
    ("gsm8k", "test"): 1319,
    ("svamp", "test"): 300,
    ("asdiv", "validation"): 2305,
    ("math", "test"): 5000,
    ("math-8020", "train"): 12_500,
    ("math500", "test"): 500,
    ("aime-1983-2025", "test"): 963,
    ("aime-1983-2024", "train"): 933,
    ("aime24", "test"): 30,
    ("aime25", "test"): 30,
    ("gpqa-main", "train"): 448,
    ("gpqa-diamond", "train"): 198,
    ("gpqa-extended", "train"): 546,
    ("olympiadbench", "train"): 674,
    ("commonsenseqa", "validation"): 1221,
    ("medmcqa", "validation"): 4183,
    ("mmlu", "test"): 14_042,
    ("hotpotqa", "validation"): 7405,
    ("simpleqa", "test"): 4326,
    ("humaneval", "test"): 164,
    ("humanevalplus", "test"): 164,
    ("mbppplus", "test"): 378,
    ("hle", "test"): 2500,
}


def measured(sets: Sequence[str], held_out: int | None) -> int | None:
    """Return the number of evaluation problems in ``sets``; None if a set must be read first.

    Args:
        sets: names as for ``--problems.eval``, or the training set.
        held_out: most problems of each set; None: all of a set with an evaluation split.
    """
    sizes = [_size(text, held_out) for text in sets]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _size(text: str, held_out: int | None) -> int | None:
    name, _, options = text.partition("?")
    if name not in HUB_SETS:
        # Generators are endless; the length of a file is unknown before it is read.
        is_file = "." in name or "/" in name or ":" in name
        return held_out if is_file else held_out or HELD_OUT
    hub_set, split = HUB_SETS[name], None
    for option in options.split("&"):
        if option.startswith("split="):
            split = option.removeprefix("split=")
    copy = find_copy(hub_set, name, split or hub_set.eval)
    if copy is not None and copy.whole and hub_set.train not in (None, hub_set.eval):
        return None  # a part of the file is held out, whose size the hub does not tell
    rows = _ROWS.get((name, split or hub_set.eval or ""))
    if split is None and hub_set.train == hub_set.eval:
        # One split serves both.
        if hub_set.train_percent is None:
            return held_out or HELD_OUT
        rows = rows and rows - rows * hub_set.train_percent // 100
    return rows if rows is None or held_out is None else min(rows, held_out)
