"""How a report labels an environment's episodes and traces: tags, marks, headings, drawings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Measured = Mapping[str, Any]
"""Measurements of one trace: ``Trajectory.info``."""


@dataclass(frozen=True)
class Tag:
    """A property by which a reader filters episodes."""

    name: str
    meaning: str
    given_by: tuple[tuple[str, Any], ...]
    """(measurement, value): a trace with any of these gives its episode the tag."""

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
    """None matches any value."""

    def applies(self, measured: Measured) -> bool:
        """Whether a trace belongs to this part."""
        if self.value is None:
            return self.measured in measured
        return measured.get(self.measured) == self.value


@dataclass(frozen=True)
class Drawing:
    """A drawing in monospaced text above the traces of an episode."""

    title: str
    measured: str
    """Name of the value in ``Outcome.episode``; it is not listed among the measurements."""
    draw: Callable[[Any], Mapping[str, str]]
    """Value -> texts by name, such as by role."""


@dataclass(frozen=True)
class ReportLabels:
    """Labels of one environment's episodes in the report."""

    tags: tuple[Tag, ...] = ()
    marks: tuple[Mark, ...] = ()
    phases: tuple[Phase, ...] = ()
    """A trace stands below the first that applies to it."""
    drawings: tuple[Drawing, ...] = ()
