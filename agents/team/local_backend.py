"""The backend of this process; torch is imported only to load a model."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, TypeVar

from coterie.agents.models.heap import return_freed_memory
from coterie.agents.team.backend import Learners, LearningSetup, Models, RestorePoint, RoleLearner
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.reading import ReadRequest, read_rows
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import Policy, Reading, Trajectory

if TYPE_CHECKING:
    from coterie.agents.models.loading import LoadedRole

T = TypeVar("T")


class LocalBackend:
    """Implements :class:`coterie.agents.team.backend.Backend`: this process samples and learns."""

    def __init__(self) -> None:
        self._learners: Learners = {}
        self._policies: Mapping[str, Policy] = {}
        self._loaded: Mapping[str, LoadedRole] = {}

    def load(
        self,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: LearningSetup | None,
        seed: int,
    ) -> Models:
        """See :meth:`coterie.agents.team.backend.Backend.load`."""
        if not models:
            return Models({}, {}, {})
        from coterie.agents.models.loading import load_team

        specs = {name: model_spec(settings) for name, settings in models.items()}
        loaded = load_team(specs, learns, seed=seed)
        policies = self.policies(models, loaded, learns, apart=learning is None, seed=seed)
        self._policies, self._loaded = policies, loaded
        codecs = {name: role.codec for name, role in loaded.items()}
        if learning is not None:
            self._learners = {n: _learner(n, loaded[n], learning) for n in models if n in learns}
        return Models(policies, codecs, self._learners, loaded)

    def policies(
        self,
        models: Mapping[str, AgentSettings],
        loaded: "Mapping[str, LoadedRole]",
        learns: Set[str],
        *,
        apart: bool,
        seed: int,
    ) -> Mapping[str, Policy]:
        """Return name -> policy for each loaded model; ``apart``: no role learns in this process.
        For the other arguments see :meth:`coterie.agents.team.backend.Backend.load`."""
        del models, learns, apart, seed
        from coterie.agents.sampling.policy import LocalPolicy

        return {name: LocalPolicy(role.handle, role.codec) for name, role in loaded.items()}

    async def start(self) -> None:
        """Do nothing: policies are ready after :meth:`load`."""

    async def refresh(self) -> None:
        """Do nothing: policies and learners share their weights."""

    async def rest(self) -> None:
        """See :meth:`free`."""
        self.free()

    def free(self) -> None:
        """Free the samplers' copies of weights, which learning makes stale, and the contexts that
        they keep, for learning."""
        from coterie.agents.sampling.policy import LocalPolicy

        for role, policy in self._policies.items():
            if isinstance(policy, LocalPolicy):
                if role in self._learners:
                    policy.sampler.release()
                else:
                    policy.sampler.forget()
        return_freed_memory()

    async def read(
        self, name: str, rows: Sequence[Trajectory], request: ReadRequest
    ) -> list[Reading | None]:
        """See :meth:`coterie.agents.team.backend.Backend.read`."""
        return read_rows(self._loaded[name].handle, rows, request)

    def learn(self, work: Callable[[str, RoleLearner], T]) -> dict[str, T]:
        """See :meth:`coterie.agents.team.backend.Backend.learn`; here roles learn in sequence."""
        learned: dict[str, T] = {}
        for role, learner in self._learners.items():
            learned[role] = work(role, learner)
            return_freed_memory()
        return learned

    def save(self, write: Callable[[Learners], RestorePoint]) -> None:
        """See :meth:`coterie.agents.team.backend.Backend.save`; here learners are not replaced."""
        write(self._learners)

    def restore(self, read: Callable[[Learners], RestorePoint]) -> None:
        """See :meth:`coterie.agents.team.backend.Backend.restore`."""
        read(self._learners)

    def places(self) -> list[dict[str, str]]:
        """Return nothing: there is only this process."""
        return []

    def spent(self) -> list[dict[str, str]]:
        """Return nothing: no server computes."""
        return []

    def close(self) -> None:
        """Do nothing: nothing was started."""


def _learner(name: str, loaded: "LoadedRole", learning: LearningSetup) -> RoleLearner:
    from coterie.agents.team.trained_role import TrainedRole
    from coterie.algorithms import Learner
    from coterie.algorithms.imitation import LIKELIHOOD

    first = learning.imitation
    learner = Learner(
        loaded.handle,
        learning.algorithm_of(name),
        learning.learners.get(name, learning.settings),
        temperature=learning.temperature_of(name),
        total_steps=learning.total_steps,
        moves_first=first is not None,
    )
    if first is None:
        return TrainedRole(loaded, learner)
    settings = first.settings(learner.settings)
    imitator = Learner(loaded.handle, LIKELIHOOD, settings, total_steps=first.steps)
    return TrainedRole(loaded, learner, imitator)
