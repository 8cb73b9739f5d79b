"""What holds the models of a team, wherever it is: it loads them, answers for them, has them learn
and saves them.

Implemented in this process (:mod:`coterie.teams.local`), with vLLM's engines beside it
(:mod:`coterie.teams.vllm`), and by processes of this machine or of a Ray cluster
(the extra ``cluster``).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from coterie.algorithms import Algorithm, LearnerSettings
from coterie.algorithms.imitation import Imitation
from coterie.datatypes import Policy, TokenCodec, Trajectory, UserError
from coterie.teams.settings import AgentSettings

if TYPE_CHECKING:  # scripts and servers do without torch
    import numpy as np
    import numpy.typing as npt

    from coterie.models.loading import LoadedRole

T = TypeVar("T")


@dataclass(frozen=True)
class Learning:
    """How the roles that are trained learn."""

    algorithm: Algorithm
    settings: LearnerSettings
    temperature: float
    """Temperature of the learner's probabilities."""
    total_steps: int
    """Updates until the end of the learning rate's schedule."""
    imitation: Imitation | None = None
    """What comes before; None: nothing does."""


class Died(UserError):
    """Raised where a process of a backend has gone that was asked."""


class Learns(Protocol):
    """A role that learns, wherever its learner is."""

    @property
    def version(self) -> int:
        """Updates so far."""
        ...

    @property
    def token_bonus(self) -> "dict[int, npt.NDArray[np.float64]]":
        """``id(trajectory)`` -> what the newest update added to its advantages, by token."""
        ...

    def update(
        self, trajectories: Sequence[Trajectory], advantage_B: "npt.ArrayLike"
    ) -> dict[str, float]: ...

    def imitate(self, rows: Sequence[Trajectory]) -> dict[str, float]: ...

    def begin(self) -> None: ...

    def divergences(self, trajectories: Sequence[Trajectory]) -> "npt.NDArray[Any]": ...

    def save(self, directory: Path) -> dict[str, Any]: ...

    def export(self, directory: Path) -> None: ...

    def load(self, directory: Path, plain: dict[str, Any]) -> None: ...


Learners = Mapping[str, Learns]
"""Those who learn, by role."""
RestorePoint = Callable[[Learners], object]
"""Brings learners to where others stood when they were saved."""


@dataclass(frozen=True)
class Models:
    """Models that were loaded, by their names."""

    policies: Mapping[str, Policy]
    """Sample from them."""
    codecs: Mapping[str, TokenCodec]
    trained: Learners
    loaded: "Mapping[str, LoadedRole]" = dataclasses.field(default_factory=dict)
    """Those that this process holds."""


class Backend(Protocol):
    """Holds the models of a team, from :meth:`load` to :meth:`close`."""

    def load(
        self,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: Learning | None,
        seed: int,
    ) -> Models:
        """Load every model where it is to live.

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
        """Start what answers, in the event loop that will ask it."""
        ...

    async def refresh(self) -> None:
        """Answer with the weights of this moment; nobody may be asked meanwhile."""
        ...

    async def rest(self) -> None:
        """Leave the devices to those who learn; nobody may be asked meanwhile."""
        ...

    def learn(self, work: Callable[[str, Learns], T]) -> dict[str, T]:
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
        """Who sits where: a row of a table for each process on a cluster."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...
