"""A worker whose roles vLLM answers for: the engines of a run in one process, inside a worker's."""

import asyncio
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, cast

from coterie.agents.engine import processes
from coterie.agents.engine.engine import Engine, EngineDied
from coterie.agents.engine.fleet import Fleet
from coterie.agents.engine.policy import VllmPolicy
from coterie.datatypes import Prompt
from coterie.extras.cluster.worker import About, Stamp, Weights, Worker
from coterie.teams.vllm import VllmBackend

NOBODYS = -1
"""A version that nobody asks for."""


@contextmanager
def _needed() -> Iterator[None]:
    """A process whose engine has died ends, and another one takes its place."""
    try:
        yield
    except EngineDied:
        os._exit(1)


class EngineWorker(Worker):
    """Whoever asks awaits what it gives; requests run side by side in its event loop. Weights come
    as to any other worker, and reach the engine as they do in a run without a cluster."""

    async def load(self) -> dict[str, About]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Load the models and start their engine."""
        # What vLLM starts imports the main module of this process, and would outlive it otherwise.
        sys.modules["__main__"].__spec__ = find_spec(processes.__name__)
        about = super().load()
        await self.backend.start()
        await self.refresh()
        return about

    async def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, role: str, requests: bytes, version: int | None
    ) -> bytes:
        """See :meth:`Worker.sample`."""
        policy = cast(VllmPolicy, self.models.policies[role])
        if version not in (None, policy.version):
            raise RuntimeError(
                f"{role} has version {policy.version} here, but version {version} was requested"
            )
        asked = pickle.loads(requests)
        answers = (
            policy(Prompt(request.tokens, "", agent, request.seed), request.sampling)
            for agent, request in asked
        )
        with _needed():
            return pickle.dumps(await asyncio.gather(*answers))

    async def update(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, role: str, arguments: bytes
    ) -> tuple[Any, Stamp]:
        """See :meth:`Worker.update`; what is being answered needs the event loop meanwhile."""
        return await asyncio.to_thread(super().update, role, arguments)

    async def take(self, role: str, weights: Weights) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See :meth:`Worker.take`."""
        super().take(role, weights)
        await self.refresh()

    async def prepare(self, role: str) -> None:
        """Answer nobody until :meth:`announce`, and see that the engine lives: see
        :class:`coterie.extras.cluster.transfer.Transfer`."""
        self.models.loaded[role].handle.version = NOBODYS
        await self.refresh()
        with _needed():
            await self._engine(role).forget_prefixes()

    async def join(self, role: str, meeting: dict[str, Any]) -> None:
        """Have the engine meet a learner that sends it weights."""
        with _needed():
            await self._engine(role).join(meeting)

    async def receive(self, role: str, described: dict[str, Any]) -> None:
        """Take over weights that are sent meanwhile."""
        with _needed():
            await self._engine(role).receive(described)

    async def announce(self, role: str, version: int) -> None:
        """All have received the weights of that version: answer with them."""
        self.models.loaded[role].handle.version = version
        await self.refresh()

    async def refresh(self) -> None:
        """Have the engine answer with the newest weights that this process holds."""
        with _needed():
            await self.backend.refresh()

    async def rest(self) -> None:
        """Leave the device to the learner."""
        await self.backend.rest()

    def close(self) -> None:
        """End the engine."""
        self.backend.close()

    def _engine(self, role: str) -> Engine:
        return cast(Engine, self._fleet.policies[role].engine)

    @property
    def _fleet(self) -> Fleet:
        fleet = cast(VllmBackend, self.backend).fleet
        assert fleet is not None, "nothing is loaded"
        return fleet
