"""Delays the calls of all episodes until they can be sampled in one batch."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

_QUIET_S = 0.002
"""Seconds to wait for calls that a program makes at the same time."""


class Gate:
    """Lets through the calls of all episodes that one event loop plays, together.

    The composition of a batch decides the last bits of log-probabilities. With a gate it depends on
    what programs ask, not on how fast they are, if none takes longer than ``gather_s`` between two
    calls.
    """

    def __init__(self, player: asyncio.AbstractEventLoop, gather_s: float) -> None:
        """
        Args:
            player: the loop that plays the episodes; everything else runs in the gateway's loop.
            gather_s: maximum number of seconds to wait for the calls of other episodes.
        """
        self._player, self._gather_s = player, gather_s
        self._playing: set[object] = set()
        self._ready: dict[object, Callable[[], Callable[[], None]]] = {}
        self._changed = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None

    def enter(self, session: object) -> None:
        """Wait for this episode from now on."""
        self._playing.add(session)

    def leave(self, session: object) -> None:
        """Stop waiting for this episode."""
        self._playing.discard(session)
        self._wake_if_complete()

    def wait(self, session: object, prepare: Callable[[], Callable[[], None]]) -> None:
        """Register an episode whose program waits for an answer.

        Args:
            session: the episode.
            prepare: called when the gate opens; its result is called in the player's loop.
        """
        self._ready[session] = prepare
        self._wake_if_complete()
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())

    def _wake_if_complete(self) -> None:
        if len(self._ready) >= len(self._playing):
            self._changed.set()

    async def _open(self) -> None:
        # Only waiting counts: between the rounds the player may sample for long.
        left_s = self._gather_s
        for _ in range(2):
            left_s -= await self._all_ready(left_s)
            await asyncio.sleep(_QUIET_S)
            # Episodes may begin while the player samples for others; the second round waits for
            # them, too.
            await self._player_is_idle()
            if self._playing <= self._ready.keys():
                break
        self._opening = None
        ready, self._ready = self._ready, {}
        deliveries = [prepare() for prepare in ready.values()]
        try:
            # One callback for all: separate ones could be sampled before the last has arrived.
            self._player.call_soon_threadsafe(_call_all, deliveries)
        except RuntimeError:  # the player's loop is closed
            self._playing.clear()

    async def _all_ready(self, limit_s: float) -> float:
        """Wait until all episodes are ready, but no longer than ``limit_s``; return the seconds
        that it took."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not self._playing <= self._ready.keys():
                    self._changed.clear()
                    await self._changed.wait()
        return loop.time() - start

    async def _player_is_idle(self) -> None:
        """Wait until the player has done everything that needs no answer."""
        gateway_loop, idle = asyncio.get_running_loop(), asyncio.Event()

        def report() -> None:
            gateway_loop.call_soon_threadsafe(idle.set)

        try:
            # One round later, because the player starts new work at the end of a round.
            self._player.call_soon_threadsafe(self._player.call_soon, report)
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
