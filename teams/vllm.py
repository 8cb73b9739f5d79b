"""The backend of this process with vLLM beside it: engines answer, and this process learns."""

from collections.abc import Mapping, Set

from coterie.agents.engine.fleet import Fleet, Seat
from coterie.agents.engine.settings import VllmSettings
from coterie.teams.backend import LearningSetup, Models
from coterie.teams.local import LocalBackend, learners, load_roles
from coterie.teams.models import model_spec
from coterie.teams.settings import AgentSettings


class VllmBackend(LocalBackend):
    """Implements :class:`coterie.teams.backend.Backend`; learns as :class:`LocalBackend` does."""

    def __init__(self, settings: VllmSettings) -> None:
        super().__init__()
        self._settings = settings
        self.fleet: Fleet | None = None
        """The engines; None: nothing is loaded."""

    def load(
        self,
        models: Mapping[str, AgentSettings],
        learns: Set[str],
        learning: LearningSetup | None,
        seed: int,
    ) -> Models:
        """See :meth:`coterie.teams.backend.Backend.load`; :meth:`start` before anybody is asked."""
        if not models:
            return Models({}, {}, {})
        loaded = load_roles(models, learns, seed)
        seats = [
            Seat(
                name,
                role,
                model_spec(models[name]),
                name in learns,
                models[name].engine_device,
                models[name].tensor_parallel,
                apart=learning is None,
            )
            for name, role in loaded.items()
        ]
        self.fleet = Fleet(seats, self._settings, seed=seed)
        codecs = {name: role.codec for name, role in loaded.items()}
        self._learners = learners(models, loaded, learns, learning)
        return Models(self.fleet.policies, codecs, self._learners, loaded)

    async def start(self) -> None:
        """Start the engines.

        Raises:
            UserError: vLLM is missing or refuses.
        """
        if self.fleet is not None:
            await self.fleet.start()

    async def refresh(self) -> None:
        """See :meth:`coterie.agents.engine.fleet.Fleet.refresh`."""
        if self.fleet is not None:
            await self.fleet.refresh()

    async def rest(self) -> None:
        """See :meth:`coterie.agents.engine.fleet.Fleet.rest`."""
        if self.fleet is not None:
            await self.fleet.rest()

    def close(self) -> None:
        """End the engines."""
        if self.fleet is not None:
            self.fleet.close()
