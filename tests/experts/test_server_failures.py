"""A server that misbehaves ends in a PolicyFailure with its reason and count, in bounded time."""

import asyncio
import gzip
import json
import time

import pytest

from coterie.datatypes import PolicyFailure, Sampling
from coterie.experts import CachedPolicy, ExpertPool
from coterie.experts.pool import last_words

LIMITS = Sampling(max_new_tokens=64)


async def dies_before_replying(exchange):
    exchange.writer.transport.abort()


async def dies_mid_reply(exchange):
    exchange.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n" + b'{"choices": [{"mes')
    await exchange.writer.drain()
    exchange.writer.close()


async def hangs(exchange):
    await asyncio.sleep(30)


async def drips(exchange):
    exchange.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n")
    while True:
        exchange.writer.write(b" ")
        await exchange.writer.drain()
        await asyncio.sleep(0.01)


async def speaks_no_http(exchange):
    exchange.writer.write(b"\x00\xff" * 64 + b"\r\n\r\n")
    await exchange.writer.drain()


async def chunks_badly(exchange):
    exchange.writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n")
    await exchange.writer.drain()


async def refused(expert, ask, match, **failures):
    """One call fails with ``match``; by the end the expert has counted ``failures``."""
    with pytest.raises(PolicyFailure, match=match):
        await expert(ask(), LIMITS)
    if failures:
        assert expert.counters.failures == failures


@pytest.mark.parametrize(
    "death", [dies_before_replying, dies_mid_reply, speaks_no_http, chunks_badly]
)
async def test_broken_connections(server, policy, ask, death):
    server.script = [death]
    expert = policy(retries=2)
    await refused(expert, ask, "^connection broke$", broken=1)
    assert len(server.requests) == 3  # one and two retries, no more
    assert server.connections == 3
    assert expert.counters.failed_attempts == {"broken": 3}
    assert (expert.counters.attempts, expert.counters.retries) == (3, 2)


async def test_hanging_server(server, policy, ask):
    server.script = [hangs]
    expert = policy(read_timeout_s=0.05, retries=1)
    started = time.monotonic()
    await refused(expert, ask, "in time", timeout=1)
    # Two attempts of 50 ms and a pause of at most 2 ms.
    assert 0.1 <= time.monotonic() - started < 5
    assert len(server.requests) == 2


async def test_slow_drip_ends_at_the_call_deadline(server, policy, ask):
    server.script = [drips]
    expert = policy(timeout_s=0.15, retries=5)
    started = time.monotonic()
    await refused(expert, ask, "in time")
    assert 0.15 <= time.monotonic() - started < 5
    # Each byte resets the read time-out, so there is one attempt, and no time for another.
    assert (len(server.requests), expert.counters.failures) == (1, {"timeout": 1})


async def test_recovers_after_a_death_and_an_error(server, policy, ask):
    error = server.sends(b"Internal Server Error", status="500 Internal Server Error")
    server.script = [dies_mid_reply, error, server.says()]
    expert = policy(retries=2)
    await expert(ask(), LIMITS)
    assert expert.counters.failed_attempts == {"broken": 1, "http_500": 1}
    assert (expert.counters.answered, expert.counters.failed) == (1, 0)
    assert expert.counters.retries == 2


async def test_429_waits_as_long_as_it_is_told(server, policy, ask):
    busy = server.sends(b"{}", status="429 Too Many Requests", retry_after="1")
    server.script = [busy, server.says()]
    expert = policy()
    started = time.monotonic()
    await expert(ask(), LIMITS)
    assert time.monotonic() - started >= 1.0
    assert expert.counters.failed_attempts == {"rate_limited": 1}
    # Telling a client to come back later is not a failure of the server.
    assert not expert.breaker.is_open


async def test_429_beyond_the_deadline_fails_at_once(server, policy, ask):
    server.script = [server.sends(b"{}", status="429 Too Many Requests", retry_after="9999999")]
    started = time.monotonic()
    await refused(policy(), ask, "429")
    assert time.monotonic() - started < 5
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("sent", "kind", "attempts"),
    [
        ({"error": {"code": 502, "message": "Provider returned error"}}, "http_502", 2),
        ({"error": {"code": 429, "message": "Rate limit exceeded"}}, "rate_limited", 2),
        ({"error": {"code": 402, "message": "Insufficient credits"}}, "http_402", 1),
        (
            {"choices": [{"message": {"content": "Half an"}, "finish_reason": "error"}]},
            "http_500",
            2,
        ),
    ],
)
async def test_errors_with_status_200(server, policy, ask, sent, kind, attempts):
    """They were JSON of another shape, and half an answer was a whole one."""
    server.script = [server.sends(json.dumps(sent).encode())]
    expert = policy(retries=1)
    await refused(expert, ask, r"\(\d+\)$", **{kind: 1})
    assert len(server.requests) == attempts


@pytest.mark.parametrize(
    "status", ["400 Bad Request", "401 Unauthorized", "404 Not Found", "302 Found"]
)
async def test_refusals_are_not_repeated(server, policy, ask, tmp_path, status):
    server.script = [server.sends(b'{"error": "no"}', status=status, location="/elsewhere")]
    expert = policy(breaker_failures=1)
    kind = f"http_{status[:3]}"
    await refused(expert, ask, rf"refused the request \({status[:3]}\)", **{kind: 1})
    assert len(server.requests) == 1
    assert not expert.breaker.is_open
    assert expert.counters.examples == ({} if kind == "http_401" else {kind: '{"error": "no"}'})
    said = "" if kind == "http_401" else f'{kind}: {{"error": "no"}}'
    cached = CachedPolicy(expert, tmp_path, identity={})
    assert last_words(ExpertPool({"0": expert, "1": cached})) == said


@pytest.mark.parametrize(
    ("body", "content_type", "kind", "attempts"),
    [
        (b'{"choices": [{"message": {"content": "An', "application/json", "bad_json", 3),
        (b"\xff\xfe\x00", "application/json", "bad_json", 3),
        (b"[" * 100_000, "application/json", "bad_json", 3),
        (b"data: {}\n\n", "text/event-stream", "bad_json", 3),
        (b"<html><body>Welcome</body></html>", "application/json", "html", 3),
        (b"Bad gateway", "text/html; charset=utf-8", "html", 3),
        (b"[]", "application/json", "schema", 1),
        (b'{"choices": []}', "application/json", "schema", 1),
        (b'{"choices": [{"message": {"content": null}}]}', "application/json", "schema", 1),
        (b'{"error": {"message": "overloaded"}}', "application/json", "schema", 1),
        (b'{"choices": [{"message": {"content": " "}}]}', "application/json", "empty", 1),
    ],
)
async def test_useless_bodies(server, policy, ask, body, content_type, kind, attempts):
    server.script = [server.sends(body, content_type=content_type)]
    expert = policy(retries=2)
    await refused(expert, ask, "server", **{kind: 1})
    assert len(server.requests) == attempts


async def test_surprising_but_usable_bodies(server, policy, ask, codec):
    reply = {"choices": [{"message": {"content": "4"}, "finish_reason": 9, "stop_reason": 151643}]}
    odd = {"prompt_tokens": -3, "completion_tokens": 1e99}
    for usage in (None, [], odd, {"prompt_tokens": "x"}):
        body = json.dumps(reply | {"usage": usage}).encode()
        server.script = [server.sends(body, content_type="text/plain")]
        expert = policy()
        completion = await expert(ask(), LIMITS)
        assert (codec.decode(completion.tokens), completion.finish_reason) == ("4", "eos")
        assert expert.counters.server_prompt_tokens == 0
        assert expert.counters.server_completion_tokens == 0


@pytest.mark.parametrize("declared", [True, False])
async def test_ten_megabytes_are_never_read_whole(server, policy, ask, declared):
    sent = 0

    async def floods(exchange):
        nonlocal sent
        length = f"content-length: {10 * 2**20}" if declared else "connection: close"
        exchange.writer.write(f"HTTP/1.1 200 OK\r\n{length}\r\n\r\n".encode())
        for _ in range(160):
            exchange.writer.write(b"x" * 2**16)
            await exchange.writer.drain()
            sent += 2**16

    server.script = [floods, server.says()]
    expert = policy(max_body_bytes=2**16)
    await refused(expert, ask, "longer than 65536 bytes", too_large=1)
    assert len(server.requests) == 1
    await expert(ask(), LIMITS)  # the next call has a connection of its own
    assert server.connections == 2
    # What the operating system buffers on loopback is less than what the flood holds.
    assert sent < 10 * 2**20


async def test_a_length_beyond_the_cap_is_believed_and_one_just_within_it_read(server, policy, ask):
    async def announces(exchange):
        exchange.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n")
        await exchange.writer.drain()
        await asyncio.sleep(30)

    body = server.body()
    server.script = [announces, server.sends(body)]
    await refused(policy(), ask, "longer than")
    await policy(max_body_bytes=len(body))(ask(), LIMITS)
    await refused(policy(max_body_bytes=len(body) - 1), ask, "longer than")


async def test_compressed_reply_is_not_unpacked(server, policy, ask):
    bomb = gzip.compress(b" " * 2**22)
    server.script = [server.sends(bomb, content_encoding="gzip")]
    await refused(policy(), ask, "compressed")
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_connection_refused(server, policy, ask):
    unused = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{unused.sockets[0].getsockname()[1]}"
    unused.close()
    await unused.wait_closed()
    expert = policy(base_url=url, retries=1)
    await refused(expert, ask, "cannot be reached", connect=1)
    assert expert.counters.failed_attempts == {"connect": 2}
    with pytest.raises(PolicyFailure, match="cannot be reached"):
        await expert.models()


async def test_an_open_breaker_ends_the_retries_of_a_call(server, policy, ask):
    server.script = [server.sends(b"no", status="500 Oops")]
    expert = policy(
        retries=9, breaker_failures=1, backoff_s=30.0, max_backoff_s=30.0, timeout_s=600.0
    )
    async with asyncio.timeout(5):  # and it does not sleep first
        await refused(expert, ask, "500")
    assert len(server.requests) == 1


async def test_one_probe_at_a_time_and_a_cancelled_probe_is_forgotten(server, policy, ask):
    server.script = [server.sends(b"no", status="500 Oops"), hangs, server.says()]
    expert = policy(retries=0, breaker_failures=1, breaker_cooldown_s=0.01)
    await refused(expert, ask, "500")
    await asyncio.sleep(0.02)
    probe = asyncio.create_task(expert(ask(), LIMITS))
    async with asyncio.timeout(5):
        while len(server.requests) < 2:
            await asyncio.sleep(0.005)
    await refused(expert, ask, "left alone")
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    await expert(ask(), LIMITS)
    counters = expert.counters
    assert counters.failures == {"http_500": 1, "circuit_open": 1, "cancelled": 1}
    assert counters.calls == counters.answered + counters.failed == 4


async def test_a_cancelled_call_frees_its_place_and_leaves_no_task(server, policy, ask):
    server.script = [hangs, server.says()]
    expert = policy(concurrency=1)
    before = asyncio.all_tasks()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await expert(ask(), LIMITS)
    await expert(ask(), LIMITS)
    assert {task for task in asyncio.all_tasks() - before if task not in server.handlers} == set()


async def test_a_storm_of_failures_stays_within_its_bounds(server, policy, ask):
    """200 calls against a server that does everything wrong in turn: all end, all are counted."""
    wrongs = [
        dies_mid_reply, hangs, server.sends(b"no", status="500 Oops"), server.sends(b'{"cho'),
        server.sends(b"<html>", content_type="text/html"), server.sends(b"[]"),
        dies_before_replying, server.says(),
    ]  # fmt: skip
    server.script = wrongs * 100
    expert = policy(read_timeout_s=0.1, retries=2, concurrency=16, breaker_failures=10**6)
    results = await asyncio.gather(
        *(expert(ask(seed=i), LIMITS) for i in range(200)), return_exceptions=True
    )
    failed = [result for result in results if isinstance(result, BaseException)]
    assert {type(failure) for failure in failed} == {PolicyFailure}
    counters = expert.counters
    assert counters.answered == 200 - len(failed) > 0
    assert counters.failures.total() == len(failed) > 0
    # A loaded machine may time out before the request has even been read.
    assert len(server.requests) <= counters.attempts <= 600
    assert counters.failed_attempts.total() == counters.attempts - counters.answered
    assert server.most_in_flight <= 16 + counters.failed_attempts["timeout"]
