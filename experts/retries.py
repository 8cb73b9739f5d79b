"""Retries of requests to a server: pauses, and a circuit breaker."""

import math
import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from coterie.datatypes import derive_seed


def backoff_s(attempt: int, *, base_s: float, limit_s: float, seed: int) -> float:
    """Return the seconds to wait after failed attempt number ``attempt`` (from 0).

    They lie between half and all of ``min(limit_s, base_s * 2**attempt)``. The jitter is a function
    of the prompt's ``seed``: runs are reproducible, and calls that fail together retry at different
    times.
    """
    longest = min(limit_s, math.ldexp(base_s, min(attempt, 64)))
    jitter = random.Random(derive_seed(seed, "backoff", attempt)).random()
    return longest * (1.0 + jitter) / 2.0


def retry_after_s(header: str | None, *, now: float) -> float:
    """Return the seconds of a Retry-After header (RFC 9110, 10.2.3), a number or a date.

    Args:
        header: the header's value; an unreadable one counts as 0.
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
    """A circuit breaker for requests to a server.

    ========= ==================== =========================================================
    state     what passes          what changes it
    ========= ==================== =========================================================
    closed    every request        ``failures`` consecutive failures open it
    open      none                 it is half-open after ``cooldown_s``; an answer closes it
    half-open one probe at a time  an answer closes it, the probe's failure opens it again;
                                   after a cancelled probe the next request is the probe
    ========= ==================== =========================================================

    Every request that passes ends in one of :meth:`success`, :meth:`failure` and :meth:`abandon`.
    Requests that were sent before the breaker opened may end after it: an answer counts, a failure
    or a cancellation says nothing new.
    """

    def __init__(
        self, failures: int, cooldown_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = failures
        self._cooldown_s = cooldown_s
        self._clock = clock
        self._consecutive = 0
        self._open_until: float | None = None
        self._requests = 0
        self._probe = 0
        """Number of the probe that is on its way; 0: none is."""

    @property
    def is_open(self) -> bool:
        """Whether requests are blocked, or the breaker is half-open."""
        return self._open_until is not None

    def allow(self) -> int:
        """Return the number of a request that may be sent now, counted from 1; 0: none may."""
        if self._open_until is not None and (self._probe or self._clock() < self._open_until):
            return 0
        self._requests += 1
        if self._open_until is not None:
            self._probe = self._requests
        return self._requests

    def success(self) -> None:
        """Record an answer."""
        self._consecutive, self._open_until, self._probe = 0, None, 0

    def failure(self, request: int) -> None:
        """Record the failure of the request with this number."""
        if self.is_open and request != self._probe:
            return
        self._consecutive += 1
        if self.is_open or self._consecutive >= self._limit:
            self._open_until, self._probe = self._clock() + self._cooldown_s, 0

    def abandon(self, request: int) -> None:
        """Record a cancelled request, which says nothing about the server."""
        if request == self._probe:
            self._probe = 0
