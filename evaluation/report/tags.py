"""What an episode can be filtered by."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
"""One line of episodes.jsonl."""


@dataclass(frozen=True)
class Tag:
    """A property of episodes."""

    name: str
    meaning: str
    of_trace: Callable[[Record], bool]
    """Whether one trace of an episode gives it the tag."""


def _measured(name: str, value: Any = True) -> Callable[[Record], bool]:
    return lambda trace: measured(trace).get(name) == value


def _failed(trace: Record) -> bool:
    return trace.get("status") != "ok" or measured(trace).get("failed") is True


TAGS = (
    Tag("rescued", "a hint turned a failure into a success", _measured("rescued")),
    Tag("hurt", "a trace did worse for its hint", _measured("hint_outcome", "hurt")),
    Tag(
        "leaked",
        "a hint, or an expert's reply that was let in, states the answer",
        lambda trace: _measured("leak")(trace) or _measured("answer_in_returns")(trace),
    ),
    Tag("deferred", "an answer was handed on to the large model", _measured("deferred")),
    Tag("consulted", "experts were asked", _measured("consulted")),
    Tag("failed", "somebody who was asked did not answer", _failed),
)
TAG_NAMES = tuple(tag.name for tag in TAGS)


def tags_of(record: Record) -> tuple[str, ...]:
    """The names of an episode's tags."""
    rows = traces(record)
    return tuple(tag.name for tag in TAGS if any(tag.of_trace(row) for row in rows))


def traces(record: Record) -> list[Record]:
    """An episode's traces; what is no object is left out."""
    return [row for row in _list(record.get("trajectories")) if isinstance(row, Mapping)]


def measured(record: Record) -> Mapping[str, Any]:
    """What was measured of a trace or an episode."""
    info = record.get("info")
    return info if isinstance(info, Mapping) else {}


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else []
