"""What an environment's evaluation is made of, and what it gives."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evaluation.metrics.bootstrap import interval
from evaluation.picture import Picture
from vocabulary import Episode, Problem

Outcomes = dict[str, Any]
"""Problem by problem, as JSON data: stored with a run, so that intervals and paired differences can
be computed at any later time without sampling again."""


class Play(Protocol):
    """How an evaluation has episodes played."""

    def __call__(
        self, problems: Sequence[Problem], *, mode: str, replicas: int = 1
    ) -> Awaitable[list[Episode]]:
        """``replicas`` episodes per problem, side by side, in the order of the problems."""
        ...


@dataclass(frozen=True)
class Resampled:
    """A metric with its bootstrap over problems, kept whole so that two can be compared."""

    value: float
    replicates: npt.NDArray[np.float64]
    """(R,) the metric on each resample; resamples of two estimates pair up when they come from the
    same problems and seed."""
    count: int
    """What the metric is a mean over: problems, or the eligible cases of a rate."""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Percentile interval; NaN where no resample defines the metric."""
        return interval(self.replicates, level)


@dataclass(frozen=True)
class Row:
    """One line of the table that a run ends with."""

    label: str
    metric: str
    better: str = "higher"
    """``higher``, ``lower`` or ``neither``."""


def no_pictures(outcomes: Mapping[str, Outcomes]) -> list[Picture]:
    """An environment without pictures."""
    return []


def no_further_rows(metrics: Iterable[str]) -> list[Row]:
    """An environment whose roles say all lines of its table."""
    return []


@dataclass(frozen=True)
class Evaluation:
    """How one environment is evaluated."""

    examine: Callable[[Play, Sequence[Problem], Sequence[str], Any], Awaitable[Outcomes]]
    """(play, problems, roles, the environment's settings) -> outcomes: samples once."""
    estimate: Callable[[Outcomes, int, int], dict[str, Resampled]]
    """(outcomes, resamples, seed) -> metrics by flat name: samples nothing."""
    rows: Callable[[Sequence[str]], list[Row]]
    """roles -> the lines of the table."""
    headline: Callable[[Sequence[str]], list[str]]
    """roles -> the training metrics that the progress bar shows."""
    pictures: Callable[[Mapping[str, Outcomes]], list[Picture]] = no_pictures
    """Outcomes by name (``before``, ``after``) -> what a report shows of them."""
    further: Callable[[Iterable[str]], list[Row]] = no_further_rows
    """Names of all metrics that were found -> more lines, for what is known only then."""

    def table(self, roles: Sequence[str], *measured: Mapping[str, Any]) -> list[Row]:
        """All lines of the table; ``measured`` are mappings by metric, such as of two moments."""
        metrics = dict.fromkeys(name for one in measured for name in one)
        return [*self.rows(roles), *self.further(metrics)]
