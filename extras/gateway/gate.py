"""Holds what episodes wait for until all have something, so that it is sampled in one batch."""

import asyncio
from collections.abc import Callable

_QUIET_S = 0.002
"""Seconds for calls that a program makes at the same time."""


class Gate:
    """Lets the calls of all episodes that one event loop plays through together.

    Batches decide the last bits of log-probabilities. Here they depend on what programs ask, not on
    how fast each is, as long as none takes longer than ``gather_s`` between two calls.
    """

    def __init__(self, player: asyncio.AbstractEventLoop, gather_s: float) -> None:
        """
        Args:
            player: plays the episodes. All else happens in the gateway's loop.
            gather_s: most seconds to wait for the calls of other episodes.
        """
        self._player, self._gather_s = player, gather_s
        self._playing: set[object] = set()
        self._ready: dict[object, Callable[[], Callable[[], None]]] = {}
        self._changed = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None

    def enter(self, session: object) -> None:
        """An episode begins."""
        self._playing.add(session)

    def leave(self, session: object) -> None:
        """It has ended, or is given up: nobody waits for it any more."""
        self._playing.discard(session)
        self._look()

    def wait(self, session: object, look: Callable[[], Callable[[], None]]) -> None:
        """A program of an episode waits.

        Args:
            session: of which.
            look: called when the gate opens; what it returns is called in the player's loop.
        """
        self._ready[session] = look
        self._look()
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())

    def _look(self) -> None:
        if len(self._ready) >= len(self._playing):
            self._changed.set()

    async def _open(self) -> None:
        for _ in range(2):
            await self._all_ready()
            await asyncio.sleep(_QUIET_S)
            # While the player samples for some, others may begin; then wait for them, too.
            await self._player_is_idle()
            if self._playing <= self._ready.keys():
                break
        self._opening = None
        ready, self._ready = self._ready, {}
        deliveries = [look() for look in ready.values()]
        try:
            # All at once: the first would else be sampled before the last has come.
            self._player.call_soon_threadsafe(_call_all, deliveries)
        except RuntimeError:  # it is closed: nobody waits
            self._playing.clear()

    async def _all_ready(self) -> None:
        """Wait until all episodes are here, or for a while."""
        try:
            async with asyncio.timeout(self._gather_s):
                while not self._playing <= self._ready.keys():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return

    async def _player_is_idle(self) -> None:
        """Wait until the player has done all that it can do without an answer."""
        here, idle = asyncio.get_running_loop(), asyncio.Event()

        def back() -> None:
            here.call_soon_threadsafe(idle.set)

        try:
            # A round later, as what the player starts is started at the end of a round.
            self._player.call_soon_threadsafe(self._player.call_soon, back)
        except RuntimeError:
            return
        while not (idle.is_set() or self._player.is_closed()):
            try:
                async with asyncio.timeout(1.0):
                    await idle.wait()
            except TimeoutError:
                continue


def _call_all(deliveries: list[Callable[[], None]]) -> None:
    for deliver in deliveries:
        deliver()
