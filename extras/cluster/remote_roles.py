"""Proxies for a learner or a sampler in another process, with the same methods."""

import pickle
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.agents.sampling import SamplingRequest
from coterie.agents.sampling.policy import fit_context
from coterie.algorithms.turn_credit import TurnBonus
from coterie.datatypes import Completion, Prompt, Sampling, Trajectory
from coterie.extras.cluster.worker import About, files_below, write_files

RoleRequest = tuple[str, str, SamplingRequest]
"""(role, agent, request)"""


class RemoteRole:
    """A :class:`coterie.agents.team.backend.RoleLearner` that runs in other processes."""

    def __init__(self, role: str, ask: Callable[..., Any], about: About, *, shared: bool) -> None:
        """``ask`` takes a method of :class:`coterie.extras.cluster.worker.Worker`, the role and
        arguments; ``shared``: the other process sees this process's folders."""
        self._role, self._ask, self._shared = role, ask, shared
        self.context, self.stamp = about.context, about.stamp
        """Changes whenever the weights change."""
        self.token_bonus: dict[int, npt.NDArray[np.float64]] = {}
        """See :class:`coterie.agents.team.backend.RoleLearner`."""

    @property
    def version(self) -> int:
        return self.stamp[0]

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantage_B: npt.ArrayLike,
        turn_bonus: TurnBonus = MappingProxyType({}),
    ) -> dict[str, float]:
        """See :meth:`coterie.algorithms.learner.Learner.update`."""
        packed = pickle.dumps((trajectories, advantage_B, dict(turn_bonus)))
        (metrics, self.token_bonus), self.stamp = self._ask("update", self._role, packed)
        return metrics

    def imitate(self, rows: Sequence[Trajectory]) -> dict[str, float]:
        """See :meth:`coterie.agents.team.trained_role.TrainedRole.imitate`."""
        return self._do("imitate", rows)

    def begin(self) -> None:
        """See :meth:`coterie.agents.team.trained_role.TrainedRole.begin`."""
        self._do("begin")

    def divergences(self, trajectories: Sequence[Trajectory]) -> npt.NDArray[Any]:
        """See :meth:`coterie.algorithms.learner.Learner.divergences`."""
        return self._do("divergences", trajectories)

    def save(self, directory: Path | str) -> dict[str, Any]:
        """See :meth:`coterie.agents.team.trained_role.TrainedRole.save`."""
        return self._write("save", Path(directory))

    def export(self, directory: Path | str) -> None:
        """See :meth:`coterie.agents.team.trained_role.TrainedRole.export`."""
        self._write("export", Path(directory))

    def load(self, directory: Path | str, plain: dict[str, Any]) -> None:
        """The inverse of :meth:`save`."""
        folder = Path(directory).resolve()
        files = folder if self._shared else files_below(folder)
        self.stamp = self._ask("read", self._role, files, plain)

    def _do(self, verb: str, *arguments: Any) -> Any:
        result, self.stamp = self._ask("learn", self._role, verb, pickle.dumps(arguments))
        return result

    def _write(self, verb: str, directory: Path) -> Any:
        directory.mkdir(parents=True, exist_ok=True)
        folder = directory.resolve() if self._shared else None
        result, files = self._ask("write", self._role, verb, folder)
        write_files(files, directory)
        return result


class RemotePolicy:
    """A :class:`coterie.datatypes.Policy` that samples in another process.

    Without vLLM all roles of a team share one batch, so that their engines work in parallel.
    This blocks the event loop, as sampling in this process does.
    """

    def __init__(
        self, role: str, about: About, ask: Callable[[RoleRequest], Awaitable[Completion]]
    ) -> None:
        self._role, self._about, self._ask = role, about, ask

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """See :class:`coterie.agents.sampling.policy.LocalPolicy`."""
        sampling = fit_context(prompt, sampling, self._about)
        request = SamplingRequest(prompt.tokens, prompt.seed, sampling, prompt.continues)
        return await self._ask((self._role, prompt.agent, request))
