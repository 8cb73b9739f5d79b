"""Index episodes.jsonl, which may be larger than memory, by offset and tag; choose episodes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import orjson

from coterie.evaluation.report_labels import Tag

Record = Mapping[str, Any]
"""One line of episodes.jsonl."""


FAILED = Tag("failed", "a policy did not answer", (("failed", True),))
"""A tag of all environments."""


def tags_of(record: Record, tags: Sequence[Tag]) -> tuple[str, ...]:
    """The names of an episode's tags among those of its environment."""
    rows = record["trajectories"]
    names = [tag.name for tag in tags if any(tag.applies(row["info"]) for row in rows)]
    if FAILED.name not in names and any(row["status"] != "ok" for row in rows):
        names.append(FAILED.name)
    return tuple(names)


@dataclass(frozen=True)
class LogEntry:
    """One episode of the log."""

    offset: int
    """Start of its line in bytes."""
    step: int
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Scan:
    """The episodes of a log."""

    entries: list[LogEntry]
    unreadable: int
    """Number of lines without an episode: cut off by a kill, or damaged."""


def scan(path: Path, tags: Sequence[Tag]) -> Scan | None:
    """Read every line once, one at a time; None if there is no log."""
    if not path.is_file():
        return None
    entries: list[LogEntry] = []
    lines = offset = 0
    with path.open("rb") as file:
        for line in file:
            lines += 1
            if (record := _episode(line)) is not None:
                entries.append(LogEntry(offset, record["step"], tags_of(record, tags)))
            offset += len(line)
    return Scan(entries, lines - len(entries))


def records(path: Path, entries: Sequence[LogEntry]) -> Iterator[dict[str, Any]]:
    """The episodes at ``entries``, read again."""
    with path.open("rb") as file:
        for entry in entries:
            file.seek(entry.offset)
            yield orjson.loads(file.readline())


def _episode(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("step"), int):
        return None
    rows = record.get("trajectories")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    return record if all({"status", "info"} <= row.keys() for row in rows) else None


T = TypeVar("T")

Which = Literal["spaced", "first", "last"]
WHICH: tuple[Which, ...] = get_args(Which)


def choose(
    entries: Sequence[LogEntry], count: int, which: Which = "spaced", only: str | None = None
) -> list[LogEntry]:
    """At most ``count`` entries in the log's order: the first, the last, or evenly spaced over the
    run with both ends; with ``only``, of those that have that tag."""
    wanted = [entry for entry in entries if only is None or only in entry.tags]
    if which == "first":
        return wanted[:count]
    if which == "last":
        return wanted[max(0, len(wanted) - count) :]
    return space_evenly(wanted, count)


def space_evenly(items: Sequence[T], count: int) -> list[T]:
    """At most ``count`` of ``items``, evenly spaced: 3 of 0..9 are 0, 4 and 9."""
    if count >= len(items):
        return list(items)
    if count < 2:
        return list(items[:count])
    # Integers, as a product of floats may fall just below the wanted index.
    return [items[k * (len(items) - 1) // (count - 1)] for k in range(count)]
