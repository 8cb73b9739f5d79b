"""Which problems fill a step under dynamic sampling (DAPO, arXiv:2503.14476)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.datatypes import Trajectory


@dataclass
class Quota:
    """The problems on which some roles train in a step."""

    roles: Collection[str]
    size: int
    """Number of problems in a step."""
    problems: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Number of problems that are missing."""
        return self.size - len(self.problems)

    def of_interest(self, rows: Sequence[tuple[str, Trajectory]]) -> list[str]:
        """The problems, in order, of (problem, row) that these roles can learn from."""
        return list(dict.fromkeys(problem for problem, row in rows if self._may_learn(row)))

    def add(
        self,
        rows: Sequence[tuple[str, Trajectory]],
        key: str,
        informs: Callable[[Trajectory], bool],
    ) -> set[str]:
        """Add informative problems until the quota is full.

        Args:
            rows: (problem, row) of a round.
            key: names the groups within which rewards are compared.
            informs: whether its role learns something from a row.

        Returns:
            The informative groups of all problems of the quota.
        """
        groups = {row.groups[key] for _, row in rows if self._may_learn(row) and informs(row)}
        # A row that failed may have no such group.
        chosen = [(problem, row) for problem, row in rows if row.groups.get(key) in groups]
        found = dict.fromkeys([*self.problems, *(problem for problem, _ in chosen)])
        self.problems = list(found)[: self.size]
        return {row.groups[key] for problem, row in chosen if problem in self.problems}

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
