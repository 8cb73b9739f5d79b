"""The backend with vLLM engines that sample, while this process learns."""

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from coterie.agents.team.local_backend import LocalBackend
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.reading import ReadRequest
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.fleet import Fleet, Seat
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import Policy, Reading, Trajectory

if TYPE_CHECKING:
    from coterie.agents.models.loading import LoadedRole


class VllmBackend(LocalBackend):
    """Implements :class:`coterie.agents.team.backend.Backend`; it learns like
    :class:`LocalBackend`."""

    def __init__(self, settings: VllmSettings) -> None:
        super().__init__()
        self._settings = settings
        self.fleet: Fleet | None = None
        """The engines; None before :meth:`load`."""

    def policies(
        self,
        models: Mapping[str, AgentSettings],
        loaded: "Mapping[str, LoadedRole]",
        learns: Set[str],
        *,
        apart: bool,
        seed: int,
    ) -> Mapping[str, Policy]:
        """See :meth:`LocalBackend.policies`; call :meth:`start` before the first request."""
        seats = [
            Seat(
                name,
                role,
                model_spec(models[name]),
                name in learns,
                models[name].engine_device,
                models[name].tensor_parallel,
                apart=apart,
            )
            for name, role in loaded.items()
        ]
        self.fleet = Fleet(seats, self._settings, seed=seed)
        return self.fleet.policies

    async def read(
        self, name: str, rows: Sequence[Trajectory], request: ReadRequest
    ) -> list[Reading | None]:
        """See :meth:`coterie.agents.team.backend.Backend.read`; the engine reads."""
        assert self.fleet is not None, "nothing is loaded"
        return await self.fleet.policies[name].read(rows, request.likeliest, request.width)

    async def start(self) -> None:
        """Start the engines.

        Raises:
            UserError: vLLM is missing or fails to start.
        """
        if self.fleet is not None:
            await self.fleet.start()

    async def refresh(self) -> None:
        """See :meth:`coterie.agents.vllm.fleet.Fleet.refresh`."""
        if self.fleet is not None:
            await self.fleet.refresh()

    async def rest(self) -> None:
        """See :meth:`coterie.agents.vllm.fleet.Fleet.rest`."""
        if self.fleet is not None:
            await self.fleet.rest()

    def close(self) -> None:
        """End the engines."""
        if self.fleet is not None:
            self.fleet.close()
