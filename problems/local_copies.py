"""Local copies of known data sets, in the folder of ``COTERIE_DATA``.

For ``gsm8k``: ``gsm8k_train.jsonl`` and ``gsm8k_test.jsonl`` (or ``gsm8k-train.parquet``, ...) are
the splits, ``gsm8k.jsonl`` is the whole set, and a folder ``gsm8k`` has the hub's layout.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from coterie.datatypes import UserError, user_path
from coterie.problems.columns import Columns
from coterie.problems.files import SUFFIXES, read_problems, read_rows
from coterie.problems.hub import HubSet, Purpose, load_hub, split_of
from coterie.problems.source import ProblemSet
from coterie.problems.split import part

VARIABLE = "COTERIE_DATA"
_TRAIN_PERCENT = 80


@dataclass(frozen=True)
class LocalCopy:
    """A local copy of a known data set."""

    path: Path
    """A file, or a folder in the hub's layout."""
    whole: bool
    """Whether the file contains all splits."""


def find_copy(hub_set: HubSet, name: str, split: str | None) -> LocalCopy | None:
    """Return the local copy of a known data set; None without one.

    Args:
        hub_set: the set; local folders have no copy.
        name: name of the set.
        split: the requested split.

    Raises:
        UserError: the variable names no folder, or there are two copies of a split.
    """
    named = os.environ.get(VARIABLE)
    if not named or user_path(hub_set.repo).is_dir():
        return None
    folder = user_path(named)
    if not folder.is_dir():
        raise UserError(f"{VARIABLE} names {folder}, which is no folder; mend or unset it")
    if (folder / name).is_dir():
        return LocalCopy(folder / name, whole=False)
    stems = [f"{name}_{split}", f"{name}-{split}"] if split else []
    for tried in (stems, [name]):
        paths = (folder / f"{stem}{suffix}" for stem in tried for suffix in SUFFIXES)
        found = [path for path in paths if path.is_file()]
        if len(found) > 1:
            raise UserError(f"{found[0]} and {found[1]} are both copies of {name}; keep one")
        if found:
            return LocalCopy(found[0], whole=tried == [name])
    return None


def load_known(
    hub_set: HubSet,
    name: str,
    purpose: Purpose,
    *,
    split: str | None = None,
    columns: Columns | None = None,
    order: Literal["shuffled", "given"] = "shuffled",
) -> ProblemSet:
    """Load the training or the evaluation part of a known data set, from a local copy or the hub.

    A file with all splits is divided 80:20, like undivided sets of the hub. For arguments and
    errors see :func:`coterie.problems.hub.load_hub`.
    """
    chosen = split_of(hub_set, name, purpose, split)
    copy = find_copy(hub_set, name, chosen)
    if copy is None or copy.path.is_dir():
        source = hub_set if copy is None else replace(hub_set, repo=str(copy.path))
        problems = load_hub(source, name, purpose, split=split, columns=columns, order=order)
    else:
        if copy.whole and split is not None and {hub_set.train, hub_set.eval} - {None} != {split}:
            raise UserError(
                f"{copy.path} holds all of {name}; leave out split={split}, or call the file of "
                f"that split {name}_{split}{copy.path.suffix}"
            )
        stem = name if copy.whole else f"{name}-{chosen}"
        problems = read_problems(str(copy.path), stem, read_rows(copy.path), columns)
        problems.name = name if copy.whole else f"{name} ({chosen})"
        if split is None and _is_divided(hub_set, copy):
            percent = hub_set.train_percent or _TRAIN_PERCENT
            problems = part(problems, purpose, train_percent=percent, order=order)
    if copy is not None:
        problems.notes = (*problems.notes, f"read from {copy.path}")
    return problems


def _is_divided(hub_set: HubSet, copy: LocalCopy) -> bool:
    """Whether training and evaluation each get a part of the file."""
    if hub_set.train is None:
        return False
    if hub_set.train == hub_set.eval:
        return hub_set.train_percent is not None
    return copy.whole
