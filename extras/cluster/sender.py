"""A learner whose full weights go from its GPU to those of engines apart from it, by NCCL."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar

from coterie.agents.engine.transfer import describe, open_trainer
from coterie.extras.cluster.worker import Stamp, Worker
from coterie.models.stored import StoredWeights

T = TypeVar("T")
_LET_GO_S = 10.0
"""For whoever waits in a group to notice that it has been given up."""


class Sender(Worker):
    """Whoever asks awaits what it gives: while it waits for a process that has died, it can be told
    so. Weights change and are sent in turn."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        """See :class:`Worker`."""
        super().__init__(*arguments, **more)
        self._turn = asyncio.Lock()
        self._group: Any = None
        self._waiting: asyncio.Future[Any] | None = None

    async def update(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, role: str, arguments: bytes
    ) -> tuple[Any, Stamp]:
        """See :meth:`Worker.update`."""
        return await self._alone(super().update, role, arguments)

    async def meet(self) -> tuple[str, int]:
        """Where a group can meet, once nothing else is done here: an address of this node, and a
        port that is free."""
        node, address, _ = self.where()
        return await self._alone(_free_port, "127.0.0.1" if node == "here" else address)

    async def connect(self, role: str, host: str, port: int, size: int) -> dict[str, Any]:
        """Be the first of ``size`` ranks that meet there; gives what engines are told of the
        weights."""
        handle = self.models.loaded[role].handle
        weights = StoredWeights(handle.causal_lm, handle.dtype)

        def join() -> None:
            self._leave()
            self._group = open_trainer(weights, self.rank.number, host, port, size)

        await self._alone(join)
        return describe((one.name, one) for one in weights.metadata())

    async def send(self, role: str) -> int:
        """Send all weights to whoever has met; gives how many updates they have seen."""

        def send() -> int:
            self._group.send_weights()
            return self.models.loaded[role].handle.version

        return await self._alone(send)

    async def abandon(self) -> None:
        """Leave a group of which somebody has died. Where this process goes on waiting for them, it
        ends, and another one takes its place."""
        waiting = self._waiting
        await asyncio.to_thread(self._leave)
        if waiting is not None and (await asyncio.wait([waiting], timeout=_LET_GO_S))[1]:
            os._exit(1)

    def _leave(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.shutdown()

    async def _alone(self, work: Callable[..., T], *arguments: Any) -> T:
        async with self._turn:
            self._waiting = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
            return await self._waiting


def _free_port(host: str) -> tuple[str, int]:
    import socket

    with socket.socket() as one:
        one.bind((host, 0))
        return host, one.getsockname()[1]
