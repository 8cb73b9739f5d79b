"""Pauses before another attempt, and the breaker."""

import numpy as np
import pytest

from coterie.experts.retries import CircuitBreaker, backoff_s, retry_after_s


def test_backoff_doubles_up_to_its_limit_with_jitter_from_the_seed():
    for attempt, longest in enumerate([0.5, 1.0, 2.0, 4.0, 5.0, 5.0]):
        waits = [backoff_s(attempt, base_s=0.5, limit_s=5.0, seed=seed) for seed in range(400)]
        assert longest / 2 <= min(waits) < 0.51 * longest
        assert 0.99 * longest < max(waits) <= longest
        # The mean of a uniform draw on [1/2, 1] is 3/4; its standard error here is .007.
        assert np.mean(waits) == pytest.approx(0.75 * longest, rel=0.03)
    again = backoff_s(3, base_s=0.5, limit_s=5.0, seed=9)
    assert again == backoff_s(3, base_s=0.5, limit_s=5.0, seed=9)
    assert backoff_s(10**6, base_s=0.5, limit_s=5.0, seed=1) <= 5.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),  # 100 s after the epoch, seen 10 s after it
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
        (None, 0.0),
        ("soon", 0.0),
        ("Thu, 99 Jan 99999999 00:00:01 GMT", 0.0),
    ],
)
def test_retry_after(header, seconds):
    assert retry_after_s(header, now=10.0) == seconds


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def allowed(breaker: CircuitBreaker) -> int:
    ticket = breaker.allow()
    assert ticket is not None
    return ticket


def test_breaker_walks_through_its_states():
    clock = Clock()
    breaker = CircuitBreaker(2, 10.0, clock)
    for _ in range(3):  # failures that are not in a row do not open it
        breaker.failure(allowed(breaker))
        breaker.success(allowed(breaker))
    assert not breaker.is_open
    breaker.failure(allowed(breaker))
    breaker.failure(allowed(breaker))
    assert breaker.is_open
    clock.now = 9.9
    assert breaker.allow() is None
    clock.now = 10.0
    probe = allowed(breaker)
    assert breaker.allow() is None  # one probe at a time
    breaker.abandon(probe)
    breaker.failure(allowed(breaker))
    clock.now = 19.9
    assert breaker.allow() is None
    clock.now = 20.0
    breaker.success(allowed(breaker))
    breaker.failure(allowed(breaker))  # after closing, one failure alone does not open it again
    assert not breaker.is_open


@pytest.mark.parametrize("late", ["success", "failure", "abandon"])
def test_requests_from_before_the_breaker_opened_change_nothing(late: str):
    clock = Clock()
    breaker = CircuitBreaker(2, 10.0, clock)
    old = [allowed(breaker) for _ in range(4)]
    breaker.failure(old[0])
    breaker.failure(old[1])
    clock.now = 5.0
    getattr(breaker, late)(old[2])
    assert breaker.is_open
    clock.now = 10.0
    probe = allowed(breaker)
    getattr(breaker, late)(old[3])
    assert breaker.allow() is None  # the probe is under way
    breaker.success(probe)
    assert not breaker.is_open
