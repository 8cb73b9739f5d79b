"""How long anything may take."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

# A limit is counted in so many pieces, none longer than a second.
_PIECES = 20


@dataclass(frozen=True)
class Deadlines:
    """Limits on waiting; None means no limit. What misses one is recorded as a failure.

    Time in which the event loop stands still does not count: while a local policy computes, the
    answers of others cannot come in.
    """

    call_s: float | None = None
    """Seconds for one policy call."""
    episode_s: float | None = None
    """Seconds that one episode may wait for its policies; those that have not answered then have
    failed."""
    turns: int = 256
    """Environment steps after which an episode is cut off."""


async def wait_for_all(calls: Collection[asyncio.Future[Any]], limit_s: float | None) -> float:
    """Wait until all ``calls`` are done, at most ``limit_s``; returns the seconds that counted."""
    if limit_s is None:
        await asyncio.wait(calls)
        return 0.0
    loop, piece, waited = asyncio.get_running_loop(), min(limit_s / _PIECES, 1.0), 0.0
    while True:
        start = loop.time()
        _, missing = await asyncio.wait(calls, timeout=piece)
        # However long the loop stood still, it was one piece; an answer that came then is in.
        waited += min(loop.time() - start, piece)
        if not missing or waited >= limit_s:
            return waited
