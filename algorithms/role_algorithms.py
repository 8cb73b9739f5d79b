"""A team in which roles learn by different algorithms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType

import numpy as np

from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.credit import Credit, assign_credit
from coterie.datatypes import Trajectory, named_below


@dataclass(frozen=True)
class RoleAlgorithms:
    """The algorithm of each role."""

    usual: Algorithm
    """The algorithm of every role that is not in :attr:`by_role`. It also decides how a step is
    sampled."""
    by_role: Mapping[str, Algorithm] = field(default_factory=dict)

    def of(self, role: str) -> Algorithm:
        """The algorithm of ``role``."""
        return self.by_role.get(role, self.usual)

    def after(self, done: float) -> "RoleAlgorithms":
        """These algorithms once the share ``done`` of the run is over."""
        own = {role: algorithm.after(done) for role, algorithm in self.by_role.items()}
        return RoleAlgorithms(self.usual.after(done), own)

    def at(self, role: str) -> str:
        """What the flags of the algorithm of ``role`` begin with."""
        return f"--agents.{role}.algo." if role in self.by_role else "--algo."

    def flag(self, role: str, setting: str) -> str:
        """The flag that sets ``setting``, such as ``distillation.teacher``, for ``role``: the
        team's, unless the role has another value."""
        value = attrgetter(setting.replace("-", "_"))
        at = self.at(role) if value(self.of(role)) != value(self.usual) else "--algo."
        return f"{at}{setting}"


def assign_credit_by_role(
    trajectories: Sequence[Trajectory],
    key: str,
    algorithms: RoleAlgorithms,
    averages: Mapping[str, float] = MappingProxyType({}),
) -> Credit:
    """Assign to each row the advantage that its role's algorithm gives it.

    A group may hold rows of several roles. Each algorithm compares the whole group, and only the
    rows of its own roles keep the result. The statistics of rewards do not depend on the algorithm.

    Arguments and errors as of :func:`coterie.algorithms.credit.assign_credit`.
    """
    if not algorithms.by_role:
        with named_below("--algo."):
            return assign_credit(trajectories, key, algorithms.usual, averages)
    role_B = [t.role for t in trajectories]
    advantage_B, stats, bonus = np.zeros(len(role_B)), dict[str, float](), {}
    own_averages, other_averages = dict[str, float](), dict[str, float]()
    for role in dict.fromkeys(role_B):
        algorithm = algorithms.of(role)
        with named_below(algorithms.at(role)):
            credit = assign_credit(trajectories, key, algorithm, averages)
        indices = [i for i, owner in enumerate(role_B) if owner == role]
        advantage_B[indices] = credit.advantage_B[indices]
        bonus |= {i: credit.turn_bonus[i] for i in indices if i in credit.turn_bonus}
        for name, value in credit.stats.items():
            if not name.startswith("baseline_") or name == f"baseline_{role}":
                stats[name] = value
        if algorithm.baseline == "role-average":
            # The others' rewards less their averages enter the scale of the batch.
            other_averages |= credit.averages
            own_averages |= {r: value for r, value in credit.averages.items() if r == role}
    return Credit(advantage_B, stats, {**averages, **other_averages, **own_averages}, bonus)
