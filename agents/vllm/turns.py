"""Engines that share a device take turns: at most one of them is awake."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from coterie.agents.vllm.engine import Engine


class Turns:
    """Wakes the engine of a request, once the awake engine has no request under way.

    An engine keeps its turn while requests keep coming. An episode that waits for another engine
    sends it no more, so a turn ends by itself.
    """

    def __init__(self, engines: Sequence[Engine]) -> None:
        """All engines are awake or asleep; the first use puts all others to sleep."""
        self._engines = list(engines)
        self._awake: Engine | None = None
        self._under_way = 0
        self._waiting: deque[tuple[Engine, asyncio.Future[None]]] = deque()
        # A task of its own, which no request's deadline can stop between two engines.
        self._change: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def of(self, engine: Engine) -> AsyncIterator[None]:
        """While open, ``engine`` is awake; waits for its turn first."""
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
        """Put all engines to sleep; no request may be under way."""
        while self._change is not None:  # begun for a request that was cancelled since
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
        """Give the device to the first who still waits, and to all who wait for the same engine."""
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
        for asked, turn in self._waiting:
            if asked is engine and not turn.done():
                self._under_way += 1
                turn.set_result(None)
        self._hand_over()
