"""A worker that samples with vLLM: it owns the engines of its roles."""

import asyncio
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, cast

from coterie.agents.team.vllm_backend import VllmBackend
from coterie.agents.vllm import processes
from coterie.agents.vllm.engine import Engine, EngineDied
from coterie.agents.vllm.policy import VllmPolicy
from coterie.datatypes import Prompt
from coterie.extras.cluster.worker import About, Stamp, Weights, Worker

UNAVAILABLE = -1
"""A version that no request has, so that the worker refuses all."""


@contextmanager
def _exits_with_engine() -> Iterator[None]:
    """End this process if its engine has died, so that a new process replaces it."""
    try:
        yield
    except EngineDied:
        os._exit(1)


class EngineWorker(Worker):
    """A worker that samples with a vLLM engine. Its methods are coroutines: requests run
    concurrently in its event loop. It receives weights like any other worker and passes them to
    the engine as in a run without a cluster."""

    def __init__(self, *arguments: Any, threads: int, **more: Any) -> None:
        """See :class:`Worker`. An engine on a CPU would take all cores, as if it had no others
        beside it."""
        super().__init__(*arguments, threads=threads, **more)
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))

    async def load(self) -> dict[str, About]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Load the models and start their engine."""
        # vLLM's child processes import the main module; this one makes them end with their parent.
        sys.modules["__main__"].__spec__ = find_spec(processes.__name__)
        about = super().load()
        await self.backend.start()
        await self.refresh()
        return about

    async def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, role: str, requests: bytes, version: int
    ) -> bytes:
        """See :meth:`Worker.sample`."""
        policy = cast(VllmPolicy, self.models.policies[role])
        if version != policy.version:
            raise RuntimeError(
                f"{role} has version {policy.version} here, but version {version} was requested"
            )
        answers = (
            policy(Prompt(request.tokens, "", agent, request.seed), request.sampling)
            for agent, request in pickle.loads(requests)
        )
        with _exits_with_engine():
            return pickle.dumps(await asyncio.gather(*answers))

    async def score(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, role: str, arguments: bytes
    ) -> bytes:
        """See :meth:`Worker.score`."""
        with _exits_with_engine():
            return pickle.dumps(await self.backend.read(role, *pickle.loads(arguments)))

    async def update(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, role: str, arguments: bytes
    ) -> tuple[Any, Stamp]:
        """See :meth:`Worker.update`; runs in a thread, so that the event loop can sample."""
        return await asyncio.to_thread(super().update, role, arguments)

    async def take(self, role: str, weights: Weights) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See :meth:`Worker.take`."""
        super().take(role, weights)
        await self.refresh()

    async def prepare(self, role: str) -> None:
        """Answer no request until :meth:`announce`, and check that the engine is alive. See
        :class:`coterie.extras.cluster.transfer.Transfer`."""
        self.models.loaded[role].handle.version = UNAVAILABLE
        await self.refresh()
        with _exits_with_engine():
            await self._engine(role).forget_prefixes()

    async def join(self, role: str, meeting: dict[str, Any]) -> None:
        """Have the engine join the group in which the learner sends weights."""
        with _exits_with_engine():
            await self._engine(role).join(meeting)

    async def receive(self, role: str, described: dict[str, Any]) -> None:
        """Receive the weights that the learner sends at the same time."""
        with _exits_with_engine():
            await self._engine(role).receive(described)

    async def announce(self, role: str, version: int) -> None:
        """All engines have received the weights of this version: sample with them."""
        self.models.loaded[role].handle.version = version
        await self.refresh()

    async def refresh(self) -> None:
        """Update the engine to the newest weights of this process."""
        with _exits_with_engine():
            await self.backend.refresh()

    async def rest(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Free the device for the learner."""
        with _exits_with_engine():
            await self.backend.rest()

    def close(self) -> None:
        """End the engine."""
        self.backend.close()

    def _engine(self, role: str) -> Engine:
        fleet = cast(VllmBackend, self.backend).fleet
        assert fleet is not None, "nothing is loaded"
        return cast(Engine, fleet.policies[role].engine)
