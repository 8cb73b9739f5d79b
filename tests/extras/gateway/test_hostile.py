"""2,000 requests that nobody should send, while a program plays."""

import asyncio
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from coterie.extras.gateway import http
from coterie.extras.gateway.gateway import gateway

from .conftest import CODEC, asks, babbling, chat, client, run, said, user

Make = Callable[..., Any]
REQUESTS = 2000
VALUES: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1e308,
    "",
    "x",
    [],
    [[]],
    {},
    {"a": []},
    "\ud800",
    "\x00",
]
FIELDS = ("model", "messages", "tools", "max_tokens", "stop", "stream", "n", "tool_choice",
          "response_format", "system", "input", "instructions", "previous_response_id")  # fmt: skip
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/chat/completions", "/v1/models",
         "/", "/v1/embeddings", "/" + "x" * 2000, "/v1/chat/completions?a=b")  # fmt: skip


def request(path: str, body: bytes, key: str, **more: str) -> bytes:
    headers = {
        "host": "x",
        "authorization": f"Bearer {key}",
        "content-length": str(len(body)),
        **more,
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def odd_body(chance: random.Random) -> bytes:
    """Fields of every type, as messages have them and as they do not."""
    body: dict[str, Any] = {name: chance.choice(VALUES) for name in chance.sample(FIELDS, 4)}
    if chance.random() < 0.5:
        body |= {"model": "alice", "messages": [user("hostile"), chance.choice(VALUES)]}
    if chance.random() < 0.3:
        message = {name: chance.choice(VALUES) for name in ("role", "content", "tool_calls")}
        body |= {"model": "alice", "messages": [message], "input": [message]}
    return json.dumps(body).encode()


def hostile(chance: random.Random, key: str) -> tuple[bytes, str]:
    """(what is sent, what is done then: read, close, or close at once)."""
    path = chance.choice(PATHS)
    nested = b'{"messages":' + b"[" * 100_000
    whole = request(path, odd_body(chance), key)
    return chance.choice(
        [
            (whole, "read"),
            (request(path, odd_body(chance), key, **{"x-stainless-retry-count": "1"}), "read"),
            (whole[: chance.randrange(len(whole))], "close"),
            (request(path, nested, key), "read"),
            (request(path, b"{not json", key), "read"),
            (request(path, b"\xff\xfe", key), "read"),
            (request(path, b"{}", f"{key}x"), "read"),
            (request(path, b"{}", "", authorization="Basic ="), "read"),
            (request(path, b"{}", key, **{"x-long": "y" * 40_000}), "read"),
            (request(path, b"{}", key, **{"content-length": str(2**62)}), "close"),
            (request(path, b"{}", key, **{"content-length": "-1"}), "read"),
            (request(path, b"{}", key, **{"transfer-encoding": "chunked"}), "close"),
            (b"\x16\x03\x01" + chance.randbytes(200), "close"),
            (b"GET / HTTP/9.9\r\n\r\n", "read"),
            (b"\r\n\r\n\r\n", "close"),
            (chance.randbytes(500), "close"),
        ]
    )


def attack(url: str, keys: list[str], seed: int, count: int, statuses: Counter[str]) -> None:
    chance, place = random.Random(seed), (urlsplit(url).hostname, urlsplit(url).port)
    for _ in range(count):
        data, then = hostile(chance, chance.choice(keys))
        with socket.create_connection(place, timeout=10) as connection:
            try:
                connection.sendall(data)
                if then == "read":
                    head = connection.recv(4096).split(b"\r\n")[0].decode("latin-1")
                    statuses[head.split(" ")[1] if head else "closed"] += 1
            except OSError:
                statuses["reset"] += 1


def test_hostile_requests_do_not_disturb_a_run(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    faults: list[Any] = []
    statuses: Counter[str] = Counter()
    dead: list[str] = []
    monkeypatch.setattr(http, "MOST_BODY", 1 << 20)
    gateway().loop.set_exception_handler(lambda loop, context: faults.append(context))

    async def program(endpoints: Any, problem: Any) -> float:
        # Keys of roles that are nobody's, of the one who plays, and of an episode that is over.
        keys = ["", "sk-x", *dead]
        dead.append(endpoints.api_key)
        threads = [
            threading.Thread(target=attack, args=(endpoints.base_url, keys, seed, share, statuses))
            for seed in range(4)
        ]
        for thread in threads:
            thread.start()
        async with client(endpoints) as to:
            messages: list[Any] = []
            while any(thread.is_alive() for thread in threads) and len(messages) < 60:
                messages.append(user("mine "))
                messages.append(await chat(to, messages))
                await asyncio.sleep(0.02)
        for thread in threads:
            await asyncio.to_thread(thread.join)
        return 1.0

    share = REQUESTS // 8
    for _ in range(2):
        (row,) = run(make(program), {"alice": babbling}).trajectories
        assert row.status == "ok"
        given = [piece for piece, mine in zip(row.texts, cycle()) if not mine]
        assert all("hostile" not in piece for piece in given)
        assert CODEC.decode(row.tokens).count("mine ") == len(row.turns)
    gateway().loop.set_exception_handler(None)
    assert faults == []
    assert set(statuses) <= {"400", "401", "404", "405", "409", "413", "431", "closed", "reset"}
    assert statuses["401"] > 100
    assert statuses["400"] > 100
    assert statuses["409"] > 50


def cycle() -> Iterator[bool]:
    while True:
        yield False
        yield True


def test_odd_requests_with_the_right_key_are_refused_in_a_sentence(make: Make) -> None:
    statuses: Counter[int] = Counter()

    async def program(endpoints: Any, problem: Any) -> float:
        chance = random.Random(0)
        async with client(endpoints) as to:
            for _ in range(300):
                path, body = chance.choice(PATHS[:4]), odd_body(chance)
                reply = await to.post(f"{endpoints.anthropic_url}{path}", content=body)
                statuses[reply.status_code] += 1
                if reply.status_code != 200:
                    error = reply.json()["error"]
                    assert error["message"].endswith(".")
                    assert "\n" not in error["message"]
        return await asks(endpoints, problem)

    episode = run(make(program, max_calls=1000), {"alice": babbling})
    assert set(statuses) <= {200, 400, 404}
    assert statuses[400] > 200
    answered = sum(statuses[code] for code in (200,))
    assert sum(len(row.turns) for row in episode.trajectories) == answered + 1


def test_a_slow_reader_and_one_that_leaves_in_mid_stream(make: Make) -> None:
    async def program(endpoints: Any, problem: Any) -> float:
        url = urlsplit(endpoints.base_url)
        body = json.dumps({"model": "alice", "messages": [user("x")], "stream": True}).encode()
        for _ in range(20):
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            writer.write(request("/v1/chat/completions", body, endpoints.api_key))
            await writer.drain()
            await reader.read(1)
            writer.transport.abort()
        async with client(endpoints) as to:
            assert (await chat(to, [user("y"), said("z"), user("a")]))["content"]
        return 1.0

    episode = run(make(program), {"alice": babbling})
    assert all(row.status == "ok" for row in episode.trajectories)
    assert episode.trajectories[-1].as_learned().trainable


def byte_by_byte(connection: socket.socket, key: str) -> None:
    """Sends a request that never ends."""
    for byte in request("/v1/chat/completions", b"x" * 10_000, key):
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def unread(connection: socket.socket, key: str) -> None:
    """Reads nothing of what it asks for."""
    models = b"GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\n\r\n"
    while True:
        connection.sendall(models % key.encode() * 100)


@pytest.mark.parametrize("behave", [byte_by_byte, unread])
def test_a_slow_client_is_dropped(make: Make, monkeypatch: pytest.MonkeyPatch, behave: Any) -> None:
    monkeypatch.setattr(http, "SLOW_S", 0.5)
    took: list[float] = []

    def slow(endpoints: Any) -> None:
        url, start = urlsplit(endpoints.base_url), time.monotonic()
        with (
            socket.create_connection((url.hostname, url.port), timeout=40) as connection,
            pytest.raises((ConnectionResetError, BrokenPipeError)),
        ):
            behave(connection, endpoints.api_key)
        took.append(time.monotonic() - start)

    async def program(endpoints: Any, problem: Any) -> float:
        await asyncio.to_thread(slow, endpoints)
        return await asks(endpoints, problem)

    (row,) = run(make(program), {"alice": babbling}).trajectories
    assert row.status == "ok"
    assert took[0] < 15


def test_a_program_that_floods_is_refused_and_its_episode_goes_on(make: Make) -> None:
    statuses: Counter[int] = Counter()

    async def program(endpoints: Any, problem: Any) -> float:
        body = {"model": "alice", "messages": [user("x")]}
        async with client(endpoints) as to:

            async def flood() -> None:
                reply = await to.post("/chat/completions", json=body)
                statuses[reply.status_code] += 1

            await asyncio.gather(*(flood() for _ in range(300)))
        return 1.0

    episode = run(make(program, max_calls=20), {"alice": babbling})
    assert statuses == {200: 20, 429: 280}
    assert sum(len(row.turns) for row in episode.trajectories) == 20
    assert episode.info["refused"] == 280
