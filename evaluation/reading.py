"""What a report says of an environment's episodes and traces, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Measured = Mapping[str, Any]
"""What an environment measured of one trace: ``Trajectory.info``."""


@dataclass(frozen=True)
class Tag:
    """A property of episodes, by which a reader chooses them."""

    name: str
    meaning: str
    given_by: tuple[tuple[str, Any], ...]
    """(what is measured of a trace, its value): any of these in any trace gives the tag."""

    def applies(self, measured: Measured) -> bool:
        """Whether a trace gives its episode this tag."""
        return any(measured.get(name) == value for name, value in self.given_by)


@dataclass(frozen=True)
class Mark:
    """A word beside a trace."""

    measured: str
    value: Any
    text: str
    tone: Literal["", "good", "bad", "warn"] = ""


@dataclass(frozen=True)
class Phase:
    """A heading over the traces of one part of an episode."""

    measured: str
    text: str
    value: Any = None
    """None: whatever was measured."""

    def applies(self, measured: Measured) -> bool:
        """Whether a trace belongs to this part."""
        if self.value is None:
            return self.measured in measured
        return measured.get(self.measured) == self.value


@dataclass(frozen=True)
class Drawing:
    """What stands over the traces of an episode, drawn in characters of one width."""

    title: str
    measured: str
    """What is drawn: its name in ``Outcome.episode``. It is not listed as a measurement."""
    draw: Callable[[Any], Mapping[str, str]]
    """What was measured -> texts by name, such as by role."""


@dataclass(frozen=True)
class Reading:
    """How the report reads the episodes of one environment."""

    tags: tuple[Tag, ...] = ()
    marks: tuple[Mark, ...] = ()
    phases: tuple[Phase, ...] = ()
    """The first that applies to a trace is its own."""
    drawings: tuple[Drawing, ...] = ()
