"""The interface of backends, which load, sample, train and save a team's models.

There are three: this process (:mod:`coterie.agents.team.local_backend`), this process with vLLM
engines (:mod:`coterie.agents.team.vllm_backend`), and processes on this machine or a Ray cluster
(the extra ``cluster``).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from coterie.agents.team.reading import ReadRequest
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import Algorithm, LearnerSettings
from coterie.algorithms.imitation import Imitation
from coterie.algorithms.turn_credit import TurnBonus
from coterie.datatypes import Policy, Reading, TokenCodec, Trajectory, UserError

if TYPE_CHECKING:  # scripts and servers do without torch
    import numpy as np
    import numpy.typing as npt

    from coterie.agents.models.loading import LoadedRole

T = TypeVar("T")


@dataclass(frozen=True)
class LearningSetup:
    """Algorithm, optimizer and schedule of trained roles."""

    algorithm: Algorithm
    settings: LearnerSettings
    temperature: float
    """Temperature of the learner's probabilities."""
    total_steps: int
    """Updates until the end of the learning rate's schedule."""
    imitation: Imitation | None = None
    """Imitation before training on rewards; None: there is none."""
    temperatures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Role -> its sampling temperature, if it differs from ``temperature``."""
    algorithms: Mapping[str, Algorithm] = dataclasses.field(default_factory=dict)
    """Role -> its algorithm, if it differs from ``algorithm``."""
    learners: Mapping[str, LearnerSettings] = dataclasses.field(default_factory=dict)
    """Role -> the settings of its learner, if they differ from ``settings``."""

    def algorithm_of(self, role: str) -> Algorithm:
        """The algorithm of ``role``."""
        return self.algorithms.get(role, self.algorithm)

    def done_before(self, step: int) -> float:
        """Share of the run that is over when ``step`` begins; steps count from 1."""
        return (step - 1) / self.total_steps

    def temperature_of(self, role: str) -> float:
        """The temperature of the probabilities that the learner of ``role`` computes."""
        return self.temperatures.get(role, self.temperature) or 1.0


class Died(UserError):
    """Raised when a process of a backend has died, or a server does not answer."""


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
    ) -> dict[str, float]:
        """Train on the role's rows of one step, with (B,) advantages; return metrics."""
        ...

    def imitate(self, rows: Sequence[Trajectory]) -> dict[str, float]:
        """Take one step on the likelihood of worked solutions; return metrics."""
        ...

    def begin(self) -> None:
        """End imitation and make the current weights the start of training."""
        ...

    def divergences(self, trajectories: Sequence[Trajectory]) -> "npt.NDArray[Any]":
        """Return (B,) sums over a row's sampled tokens of log pi - log pi_ref, in nats."""
        ...

    def save(self, directory: Path | str) -> dict[str, Any]:
        """Write weights and moments; return counters as JSON data, which :meth:`load` needs."""
        ...

    def export(self, directory: Path | str) -> None:
        """Write the model, or its adapter, in the hub's format for other programs."""
        ...

    def load(self, directory: Path | str, plain: dict[str, Any]) -> None:
        """Restore what :meth:`save` wrote; ``plain`` is what it returned."""
        ...


Learners = Mapping[str, RoleLearner]
"""Role -> its learner, for the roles that learn."""
RestorePoint = Callable[[Learners], object]
"""Restores learners to the state in which others were saved."""


@dataclass(frozen=True)
class Models:
    """Loaded models, by name."""

    policies: Mapping[str, Policy]
    """Name -> policy that samples from the model."""
    codecs: Mapping[str, TokenCodec]
    trained: Learners
    loaded: "Mapping[str, LoadedRole]" = dataclasses.field(default_factory=dict)
    """The models in this process."""


class Backend(Protocol):
    """The models of a team, from :meth:`load` to :meth:`close`."""

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
            learns: names of the models that learn.
            learning: how they learn; None: not in this backend.
            seed: determines the initialization of new adapters and the engines' random streams.

        Raises:
            UserError: a model cannot be loaded, or there is not enough memory.
        """
        ...

    async def start(self) -> None:
        """Prepare sampling in the event loop of later requests."""
        ...

    async def refresh(self) -> None:
        """Sample with the current weights from now on; no sampling may be in progress."""
        ...

    async def rest(self) -> None:
        """Free sampling memory for learning; no sampling may be in progress."""
        ...

    async def read(
        self, name: str, rows: Sequence[Trajectory], request: ReadRequest
    ) -> list[Reading | None]:
        """Return a frozen model's probabilities of the tokens of each row; None for rows that it
        cannot score."""
        ...

    def learn(self, work: Callable[[str, RoleLearner], T]) -> dict[str, T]:
        """Call ``work`` for every role that learns; concurrently for learners in different
        processes."""
        ...

    def save(self, write: Callable[[Learners], RestorePoint]) -> None:
        """Save the learners by ``write``. The restore point that it returns serves learners that
        replace dead ones."""
        ...

    def restore(self, read: Callable[[Learners], RestorePoint]) -> None:
        """Restore the learners by ``read``, which returns a restore point as in :meth:`save`."""
        ...

    def places(self) -> list[dict[str, str]]:
        """Return the rows of a table of processes and their machines; empty for one process."""
        ...

    def spent(self) -> list[dict[str, str]]:
        """Return the rows of a table of what a server has computed; empty without one."""
        ...

    def close(self) -> None:
        """Close what :meth:`start` and :meth:`load` opened."""
        ...
