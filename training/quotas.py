"""Which problems fill a step under dynamic sampling (DAPO, arXiv:2503.14476)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.datatypes import Trajectory

Draw = tuple[str, int]
"""A problem and the seed with which it was drawn: its replicas share both."""


@dataclass
class Quota:
    """How many problems some roles still need in a step. A problem that is drawn again counts
    again, so that a small set fills a step, too. The replicas of a draw are one."""

    roles: Collection[str]
    size: int
    """Number of problems in a step."""
    found: int = 0

    @property
    def left(self) -> int:
        """Number of problems that are missing."""
        return self.size - self.found

    def of_interest(self, rows: Sequence[tuple[Draw, Trajectory]]) -> list[Draw]:
        """The draws, in order, of (draw, row) that these roles can learn from."""
        return list(dict.fromkeys(draw for draw, row in rows if self._may_learn(row)))

    def add(
        self,
        rows: Sequence[tuple[Draw, Trajectory]],
        key: str,
        informs: Callable[[Draw, Trajectory], bool],
    ) -> set[tuple[Draw, str]]:
        """Add informative draws until the quota is full.

        Args:
            rows: (draw, row) of a round, or of draws of it that were not added before.
            key: names the groups within which rewards are compared.
            informs: whether its role learns something from a row of a draw.

        Returns:
            (draw, group) of the informative groups of the draws that were added.
        """
        informative = [
            (draw, row.groups[key])
            for draw, row in rows
            if self._may_learn(row) and informs(draw, row)
        ]
        added = list(dict.fromkeys(draw for draw, _ in informative))[: self.left]
        self.found += len(added)
        return {(draw, group) for draw, group in informative if draw in added}

    def _may_learn(self, row: Trajectory) -> bool:
        return row.role in self.roles and row.trainable


def quotas(learners: Collection[str], algorithms: RoleAlgorithms, size: int) -> tuple[Quota, Quota]:
    """Return empty quotas of the roles that a teacher teaches in this step, and of the others.

    A teacher reads every row, so its pupils learn from any problem. Their problems do not take the
    places of those from whose rewards other roles learn.

    Args:
        learners: roles that learn.
        algorithms: of this step.
        size: number of problems in a step.
    """
    taught = {role for role in learners if algorithms.of(role).distillation.teaches}
    others = {*learners} - taught
    return Quota(taught, size if taught else 0), Quota(others, size if others else 0)
