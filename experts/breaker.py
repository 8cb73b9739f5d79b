"""Leaving a server alone that keeps failing."""

import time
from collections.abc import Callable


class CircuitBreaker:
    """Closed, open, or half-open.

    Closed: everything passes. After ``failures`` failures in a row it opens and nothing passes for
    ``cooldown_s``. Then one probe at a time passes: its success closes the breaker, its failure
    opens it anew. Each ``allow()`` that said yes is followed by exactly one of ``success()``,
    ``failure()`` and ``abandoned()``.
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

    def abandoned(self) -> None:
        """The request was cancelled: nothing was learnt."""
        self._probing = False
