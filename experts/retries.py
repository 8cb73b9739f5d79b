"""Whether and when a server is asked again."""

import math
import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from coterie.datatypes import derive_seed


def backoff_s(attempt: int, *, base_s: float, limit_s: float, seed: int) -> float:
    """Seconds to wait after failed attempt number ``attempt`` (from 0).

    Between half and the whole of ``min(limit_s, base_s * 2**attempt)``. The jitter is a function of
    the prompt's ``seed``, so that a run repeats, while calls that failed together come back apart.
    """
    longest = min(limit_s, math.ldexp(base_s, min(attempt, 64)))
    jitter = random.Random(derive_seed(seed, "backoff", attempt)).random()
    return longest * (1.0 + jitter) / 2.0


def retry_after_s(header: str | None, *, now: float) -> float:
    """Seconds named by a Retry-After header (RFC 9110, 10.2.3): a number or a date.

    Args:
        header: the header's value; anything unreadable counts as 0.
        now: seconds since the epoch, for dates.
    """
    if not header:
        return 0.0
    header = header.strip()[:64]
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0


class CircuitBreaker:
    """Closed, open, or half-open.

    Closed: everything passes. After ``failures`` failures in a row it opens and nothing passes for
    ``cooldown_s``. Then one probe at a time passes: its success closes the breaker, its failure
    opens it anew. Each ``allow()`` that said yes is followed by exactly one of ``success()``,
    ``failure()`` and ``abandon()``.
    """

    def __init__(
        self, failures: int, cooldown_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.opened = 0
        """How often it opened."""
        self._limit = failures
        self._cooldown_s = cooldown_s
        self._clock = clock
        self._in_a_row = 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether calls are held back (half-open included)."""
        return self._open_until is not None

    def allow(self) -> bool:
        """Whether a request may be sent now."""
        if self._open_until is None:
            return True
        if self._probing or self._clock() < self._open_until:
            return False
        self._probing = True
        return True

    def success(self) -> None:
        """The server answered."""
        self._in_a_row = 0
        self._open_until = None
        self._probing = False

    def failure(self) -> None:
        """The server failed."""
        self._in_a_row += 1
        # Requests that were under way when it opened say nothing new.
        if self._probing or (self._open_until is None and self._in_a_row >= self._limit):
            self._open_until = self._clock() + self._cooldown_s
            self._probing = False
            self.opened += 1

    def abandon(self) -> None:
        """The request was cancelled: nothing was learnt."""
        self._probing = False
