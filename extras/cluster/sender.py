"""A learner that sends its full weights by NCCL to the GPUs of separate engines."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar

from coterie.agents.models.stored import StoredWeights
from coterie.agents.vllm.transfer import describe, open_trainer
from coterie.extras.cluster.worker import Stamp, Worker

T = TypeVar("T")
_LET_GO_S = 10.0
"""Seconds for a waiting thread to notice that its group was abandoned."""


class Sender(Worker):
    """A worker that learns and sends its weights to engines over NCCL. Its methods are coroutines,
    so :meth:`abandon` can run while another waits for a dead process. A lock keeps updates and
    transfers apart."""

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
        return await self._in_turn(super().update, role, arguments)

    async def meet(self) -> tuple[str, int]:
        """An address of this node and a free port, where a group can meet. Waits for earlier
        work."""
        node, address, _ = self.where()
        return await self._in_turn(_free_port, "127.0.0.1" if node == "here" else address)

    async def connect(self, role: str, host: str, port: int, size: int) -> dict[str, Any]:
        """Join a group of ``size`` ranks as its first; return the description of the weights that
        engines need.

        Args:
            role: whose weights are sent.
            host: address of the meeting point.
            port: port of the meeting point.
            size: members of the group, this process included.
        """
        handle = self.models.loaded[role].handle
        weights = StoredWeights(handle.causal_lm, handle.dtype)

        def join() -> None:
            self._leave()
            self._group = open_trainer(weights, self.rank.number, host, port, size)

        await self._in_turn(join)
        return describe((tensor.name, tensor) for tensor in weights.metadata())

    async def send(self, role: str) -> int:
        """Send all weights to the group; return their version, the number of updates."""

        def send() -> int:
            self._group.send_weights()
            return self.models.loaded[role].handle.version

        return await self._in_turn(send)

    async def abandon(self) -> None:
        """Leave a group with a dead member. If this process still waits for that member, it exits,
        and a new process replaces it."""
        waiting = self._waiting
        await asyncio.to_thread(self._leave)
        if waiting is not None and (await asyncio.wait([waiting], timeout=_LET_GO_S))[1]:
            os._exit(1)

    def _leave(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.shutdown()

    async def _in_turn(self, work: Callable[..., T], *arguments: Any) -> T:
        async with self._turn:
            self._waiting = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
            return await self._waiting


def _free_port(host: str) -> tuple[str, int]:
    import socket

    with socket.socket() as listener:
        listener.bind((host, 0))
        return host, listener.getsockname()[1]
