"""One pass over episodes.jsonl, which may be larger than memory: where each episode stands, and
what it can be chosen by."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from coterie.evaluation.report.tags import tags_of


@dataclass(frozen=True)
class Entry:
    """One episode of the log."""

    offset: int
    """Where its line begins, in bytes."""
    step: int
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Scan:
    """What the log holds."""

    entries: list[Entry]
    unreadable: int
    """Lines that hold no episode: cut off by a kill, or damaged."""


def scan(path: Path) -> Scan | None:
    """Read every line once, one at a time; None without a log."""
    if not path.is_file():
        return None
    entries: list[Entry] = []
    lines = offset = 0
    with path.open("rb") as file:
        for line in file:
            lines += 1
            if (record := _episode(line)) is not None:
                entries.append(Entry(offset, record["step"], tags_of(record)))
            offset += len(line)
    return Scan(entries, lines - len(entries))


def records(path: Path, entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
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
    return record if isinstance(record.get("trajectories"), list) else None
