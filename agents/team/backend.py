"""The backend of a team: it loads its models, samples from them, trains them and saves them.

Implemented in this process (:mod:`coterie.agents.team.local_backend`), with vLLM's engines beside
it (:mod:`coterie.agents.team.vllm_backend`), and by processes of this machine or of a Ray cluster
(the extra ``cluster``).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import Algorithm, LearnerSettings
from coterie.algorithms.imitation import Imitation
from coterie.algorithms.turn_credit import TurnBonus
from coterie.datatypes import Policy, TokenCodec, Trajectory, UserError

if TYPE_CHECKING:  # scripts and servers do without torch
    import numpy as np
    import numpy.typing as npt

    from coterie.agents.models.loading import LoadedRole

T = TypeVar("T")


@dataclass(frozen=True)
class LearningSetup:
    """Algorithm, optimiser and schedule of the roles that are trained."""

    algorithm: Algorithm
    settings: LearnerSettings
    temperature: float
    """Temperature of the learner's probabilities."""
    total_steps: int
    """Updates until the end of the learning rate's schedule."""
    imitation: Imitation | None = None
    """Imitation before reward training; None: there is none."""
    temperatures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Role -> its sampling temperature, where that is not ``temperature``."""


class Died(UserError):
    """Raised where a process of a backend has gone that was asked."""


class RoleLearner(Protocol):
    """The learner of one role, in this process or in others."""

    @property
    def version(self) -> int:
        """Updates so far."""
        ...

    @property
    def token_bonus(self) -> "dict[int, npt.NDArray[np.float64]]":
        """Index of a trajectory in the latest update -> (T,) additions to its advantages."""
        ...

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantage_B: "npt.ArrayLike",
        turn_bonus: TurnBonus = ...,
    ) -> dict[str, float]: ...

    def imitate(self, rows: Sequence[Trajectory]) -> dict[str, float]: ...

    def begin(self) -> None: ...

    def divergences(self, trajectories: Sequence[Trajectory]) -> "npt.NDArray[Any]": ...

    def save(self, directory: Path | str) -> dict[str, Any]: ...

    def export(self, directory: Path | str) -> None: ...

    def load(self, directory: Path | str, plain: dict[str, Any]) -> None: ...


Learners = Mapping[str, RoleLearner]
"""Role -> its learner, for the roles that learn."""
RestorePoint = Callable[[Learners], object]
"""Brings learners to where others stood when they were saved."""


@dataclass(frozen=True)
class Models:
    """Loaded models, by name."""

    policies: Mapping[str, Policy]
    """Name -> what samples from the model."""
    codecs: Mapping[str, TokenCodec]
    trained: Learners
    loaded: "Mapping[str, LoadedRole]" = dataclasses.field(default_factory=dict)
    """The models that this process holds."""


class Backend(Protocol):
    """Holds the models of a team, from :meth:`load` to :meth:`close`."""

    def load(
        self,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: LearningSetup | None,
        seed: int,
    ) -> Models:
        """Load every model onto its device.

        Args:
            models: settings by name.
            learns: names of those who learn.
            learning: how they do; None: they learn elsewhere, or nobody does.
            seed: names the random start of new adapters, and the engines' streams.

        Raises:
            UserError: a model cannot be loaded, or finds no room.
        """
        ...

    async def start(self) -> None:
        """Start sampling, in the event loop that will ask for samples."""
        ...

    async def refresh(self) -> None:
        """Sample with the current weights from now on; no sampling may be in progress."""
        ...

    async def rest(self) -> None:
        """Free the devices for learning; no sampling may be in progress."""
        ...

    def learn(self, work: Callable[[str, RoleLearner], T]) -> dict[str, T]:
        """Do ``work`` for every role that learns, by its name: at the same time for learners that
        do not share a process."""
        ...

    def save(self, write: Callable[[Learners], RestorePoint]) -> None:
        """Have ``write`` save those who learn. What it gives is kept for learners that take the
        place of one that has died."""
        ...

    def restore(self, read: Callable[[Learners], RestorePoint]) -> None:
        """Have ``read`` bring those who learn to where others were saved; what it gives as of
        :meth:`save`."""
        ...

    def places(self) -> list[dict[str, str]]:
        """Which process runs where: a row of a table for each process on a cluster."""
        ...

    def close(self) -> None:
        """End what :meth:`start` and :meth:`load` started."""
        ...
