"""Engines that share a device take turns: at most one of them is awake."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol


class Sleeper(Protocol):
    """Something that needs the device while it is awake."""

    async def sleep(self) -> None: ...

    async def wake(self) -> None: ...


class Turns:
    """Wakes the engine that is asked, once the one that is awake has nothing under way.

    An engine keeps its turn while requests keep coming: whoever waits for another one asks nothing
    more of it, so a turn ends by itself.
    """

    def __init__(self, engines: Sequence[Sleeper]) -> None:
        """All engines are awake or asleep; the first use puts all others to sleep."""
        self._engines = list(engines)
        self._awake: Sleeper | None = None
        self._under_way = 0
        self._waiting: deque[tuple[Sleeper, asyncio.Future[None]]] = deque()
        self._changing = False

    @asynccontextmanager
    async def of(self, engine: Sleeper) -> AsyncIterator[None]:
        """``engine`` is awake inside."""
        if engine is self._awake and not self._changing:
            self._under_way += 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((engine, turn))
            await self._hand_over()
            await self._granted(turn)
        try:
            yield
        finally:
            self._under_way -= 1
            await self._hand_over()

    async def rest(self) -> None:
        """Put the one that is awake to sleep; nothing may be under way."""
        assert not self._under_way, "an engine is put to sleep under its requests"
        for engine in self._engines:
            await engine.sleep()
        self._awake = None

    async def _granted(self, turn: asyncio.Future[None]) -> None:
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._under_way -= 1
                await self._hand_over()
            raise

    async def _hand_over(self) -> None:
        """Give the device to the first who waits, and to all who wait for the same engine."""
        if self._under_way or self._changing or not self._waiting:
            return
        self._changing = True
        try:
            engine = self._waiting[0][0]
            if engine is not self._awake:
                for other in self._engines:
                    if other is not engine:
                        await other.sleep()
                await engine.wake()
                self._awake = engine
        finally:
            self._changing = False
        mine = [item for item in self._waiting if item[0] is engine]
        self._waiting = deque(item for item in self._waiting if item[0] is not engine)
        for _, turn in mine:
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)
        if not self._under_way:
            await self._hand_over()
