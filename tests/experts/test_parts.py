"""Breaker, back-off, think markers, encoding."""

import time

import numpy as np
import pytest

from experts.backoff import backoff_s, retry_after_s
from experts.breaker import CircuitBreaker
from experts.encode import encode_reply, tail
from experts.thinking import split_thinking


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
        ("", 0.0),
        ("-5", 0.0),
        ("soon", 0.0),
        ("٣", 0.0),
        ("Thu, 99 Jan 99999999 00:00:01 GMT", 0.0),
        ("1" * 64, float("1" * 64)),
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
        assert breaker.allow()
        breaker.failure()
        assert breaker.allow()
        breaker.success()
    assert not breaker.is_open
    assert breaker.allow()
    assert breaker.allow()
    assert breaker.allow()
    breaker.failure()
    breaker.failure()
    assert breaker.is_open
    clock.now = 5.0
    breaker.failure()  # the third request, under way since before: the cool-down is not prolonged
    clock.now = 9.9
    assert not breaker.allow()
    clock.now = 10.0
    assert breaker.allow()
    assert not breaker.allow()  # one probe at a time
    breaker.abandoned()
    assert breaker.allow()
    breaker.failure()
    clock.now = 19.9
    assert not breaker.allow()
    clock.now = 20.0
    assert breaker.allow()
    breaker.success()
    assert breaker.allow()
    assert breaker.opened == 2
    breaker.failure()  # after closing, one failure alone does not open it again
    assert not breaker.is_open


@pytest.mark.parametrize(
    ("text", "thinking", "reply"),
    [
        ("<think>a</think>b", "a", "b"),
        ("a</think>\n b \n", "a", "b"),
        ("[THINK]a[/THINK]b", "a", "b"),
        ("<think>a</think>b</think>c", "a</think>b", "c"),
        ("b", "", "b"),
        ("b <think>", "", "b <think>"),
        (" <think>a", "a", None),
        ("<think>a</think>", "a", ""),
        ("", "", ""),
    ],
)
def test_split_thinking(text, thinking, reply):
    assert split_thinking(text) == (thinking, reply)


@pytest.mark.parametrize("piece", ["<think>", "</think>", "[/THINK]", "<think></think>", "<", "\\"])
def test_split_thinking_is_linear(piece):
    started = time.monotonic()
    split_thinking(piece * (10**6 // len(piece)))
    assert time.monotonic() - started < 0.5


def test_encoding(codec):
    whole = encode_reply("né", codec, 3)
    assert (whole.tokens.tolist(), whole.finish_reason) == ([110, 195, 169], "eos")
    assert (whole.tokens.dtype, whole.logprobs.dtype) == (np.int64, np.float32)
    cut = encode_reply("né", codec, 2, "stop")
    assert (cut.tokens.tolist(), cut.finish_reason) == ([110], "length")
    assert len(encode_reply("abc", codec, 0).tokens) == 0
    assert tail("abcdé", codec, 3) == "dé"


def test_a_huge_reply_is_never_tokenised_whole(codec):
    seen = []

    class Watching(type(codec)):
        def truncate(self, text, limit, *, keep="head"):
            seen.append(len(text))
            return super().truncate(text, limit, keep=keep)

    encode_reply("x" * 10**7, Watching(), 100)
    tail("x" * 10**7, Watching(), 100)
    assert max(seen) == 51_200
