"""Turns of engines that share a device, of which at most one is awake."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from coterie.agents.vllm.engine import Engine


class Turns:
    """Wakes the engine of a request as soon as the awake engine has no request in progress.

    An engine keeps its turn while requests keep coming. Episodes that wait for another engine send
    no more requests, so every turn ends.
    """

    def __init__(self, engines: Sequence[Engine]) -> None:
        """``engines`` may be awake or asleep; the first use puts all others to sleep."""
        self._engines = list(engines)
        self._awake: Engine | None = None
        self._under_way = 0
        self._waiting: deque[tuple[Engine, asyncio.Future[None]]] = deque()
        # A separate task, so that no request's deadline can interrupt a change of engines.
        self._change: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def of(self, engine: Engine) -> AsyncIterator[None]:
        """Wait for the turn of ``engine`` and keep it awake inside the block."""
        if engine is self._awake and self._change is None:
            self._under_way += 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((engine, turn))
            self._hand_over()
            await self._wait_for(turn)
        try:
            yield
        finally:
            self._give_back()

    async def rest(self) -> None:
        """Put all engines to sleep; no request may be in progress."""
        while self._change is not None:  # begun for a request that was cancelled later
            await asyncio.shield(self._change)
        assert not self._under_way, "an engine was put to sleep with requests in flight"
        self._awake = None
        for engine in self._engines:
            await engine.sleep()

    async def _wait_for(self, turn: asyncio.Future[None]) -> None:
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give_back()
            raise

    def _give_back(self) -> None:
        self._under_way -= 1
        self._hand_over()

    def _hand_over(self) -> None:
        """Give the device to the first waiting request, and to all others for the same engine."""
        self._waiting = deque(item for item in self._waiting if not item[1].done())
        if self._waiting and not self._under_way and self._change is None:
            self._change = asyncio.create_task(self._change_to(self._waiting[0][0]))

    async def _change_to(self, engine: Engine) -> None:
        try:
            if engine is not self._awake:
                self._awake = None
                for other in self._engines:
                    if other is not engine:
                        await other.sleep()
                await engine.wake()
                self._awake = engine
        except Exception as error:
            for _, turn in self._waiting:
                if not turn.done():
                    turn.set_exception(error)
        finally:
            self._change = None
        for waiting_for, turn in self._waiting:
            if waiting_for is engine and not turn.done():
                self._under_way += 1
                turn.set_result(None)
        self._hand_over()
