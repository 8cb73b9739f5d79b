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


def test_breaker_walks_through_its_states():
    clock = Clock()
    breaker = CircuitBreaker(2, 10.0, clock)
    for _ in range(3):  # failures that are not in a row do not open it
        breaker.failure(breaker.allow())
        breaker.success()
    assert not breaker.is_open
    breaker.failure(breaker.allow())
    breaker.failure(breaker.allow())
    assert breaker.is_open
    clock.now = 9.9
    assert not breaker.allow()
    clock.now = 10.0
    probe = breaker.allow()
    assert probe
    assert not breaker.allow()  # one probe at a time
    breaker.abandon(probe)
    probe = breaker.allow()
    assert probe
    breaker.failure(probe)
    clock.now = 19.9
    assert not breaker.allow()
    clock.now = 20.0
    assert breaker.allow()
    breaker.success()
    breaker.failure(breaker.allow())  # after closing, one failure alone does not open it again
    assert not breaker.is_open


@pytest.mark.parametrize("ends", ["failure", "abandon"])
def test_a_request_that_ends_late_is_no_probe(ends):
    clock = Clock()
    breaker = CircuitBreaker(1, 10.0, clock)
    late, first = breaker.allow(), breaker.allow()
    breaker.failure(first)
    clock.now = 10.0
    probe = breaker.allow()
    clock.now = 15.0
    getattr(breaker, ends)(late)
    clock.now = 30.0
    assert not breaker.allow()  # the probe is still on its way
    breaker.failure(probe)
    assert not breaker.allow()
    clock.now = 40.0
    assert breaker.allow()


def test_a_late_answer_closes_the_breaker():
    breaker = CircuitBreaker(1, 10.0, Clock())
    late, first = breaker.allow(), breaker.allow()
    breaker.failure(first)
    breaker.success()
    assert late
    assert breaker.allow()
