"""The order of problems in an epoch by their difficulty, as the run itself has measured it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from coterie.datatypes import Problem

Order = Literal["shuffled", "easy-first", "adaptive"]

Difficulty = Mapping[str, Mapping[str, float]]
"""A curriculum as JSON data: problem id -> its rank, for the epoch that is being drawn (``fixed``)
and for the next one (``newer``); empty for a shuffled stream."""


@dataclass(frozen=True)
class Played:
    """What a step measured about one problem."""

    reward: float
    """Mean reward of the rows of roles that learn."""
    mixed: bool
    """Whether rewards differ within a group, so that there was something to learn."""


_RANKS: Mapping[str, tuple[Callable[[Played], float], float]] = {
    # The easiest problem has the largest reward.
    "easy-first": (lambda played: -played.reward, float("inf")),
    "adaptive": (lambda played: 0.0 if played.mixed else 2.0, 1.0),
}
"""Order -> (rank of a problem, rank of one that was not measured); lower ranks come earlier."""


class Curriculum:
    """Sorts the problems of an epoch by what was measured before its first problem was drawn."""

    def __init__(self, order: Literal["easy-first", "adaptive"]) -> None:
        self._rank, self._unmeasured = _RANKS[order]
        self._fixed: Mapping[str, float] = {}
        self._newer: dict[str, float] = {}

    def measure(self, played: Mapping[str, Played]) -> None:
        """Note the newest measurements, which count from the next epoch on.

        Args:
            played: problem id -> what was measured.
        """
        self._newer |= {id: self._rank(measured) for id, measured in played.items()}

    def begin_epoch(self) -> None:
        """Fix the order of the next epoch."""
        self._fixed, self._newer = {**self._fixed, **self._newer}, {}

    def sort(self, problems: Sequence[Problem]) -> list[int]:
        """Return the indices of ``problems`` in their order; equal ranks keep theirs."""
        ranks = [self._fixed.get(problem.id, self._unmeasured) for problem in problems]
        return sorted(range(len(problems)), key=ranks.__getitem__)

    @property
    def difficulty(self) -> Difficulty:
        """The state, for a checkpoint; setting it continues there."""
        return {"fixed": self._fixed, "newer": {**self._newer}}

    @difficulty.setter
    def difficulty(self, difficulty: Difficulty) -> None:
        self._fixed = difficulty.get("fixed", {})
        self._newer = {**difficulty.get("newer", {})}
