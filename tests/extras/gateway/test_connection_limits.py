"""Who may have how many connections, and how much may be sent on them."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from coterie.extras.gateway import connection_limits, http
from coterie.extras.gateway.http import HttpRequest, Reply, Server


async def handler(request: HttpRequest) -> Reply:
    if request.path == "/breaks":
        raise KeyError("a hole")
    if request.path == "/slow":
        await asyncio.sleep(20)
    return Reply(200, request.path.encode(), kind="text/plain")


def refusal(status: int, sentence: str) -> Reply:
    return Reply(status, sentence.encode(), kind="text/plain")


def owner(headers: Mapping[str, str]) -> str | None:
    return headers.get("x-owner")


class Client:
    """A socket, and what comes of it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)

    def ask(self, name: str, path: str = "/", more: bytes = b"") -> None:
        owned = f"x-owner: {name}\r\n" if name else ""
        method = "POST" if more else "GET"
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\n{owned}".encode() + (more or b"\r\n"))

    def read(self) -> bytes:
        """What comes next; b"" where the server has closed."""
        with suppress(ConnectionResetError):
            return self.socket.recv(1 << 16)
        return b""

    @property
    def open(self) -> bool:
        """Whether the server has not closed it within a while."""
        self.socket.settimeout(0.3)
        try:
            return self.read() != b""
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(5)


@pytest.fixture
def connect() -> Iterator[Callable[[], Client]]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Server(handler, refusal, owner)
    url = asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    clients: list[Client] = []

    def connected() -> Client:
        clients.append(Client(int(url.rpartition(":")[2])))
        return clients[-1]

    yield connected
    for client in clients:
        client.socket.close()

    async def end() -> None:
        server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    asyncio.run_coroutine_threadsafe(end(), loop).result(5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_idle_clients_without_a_key_keep_no_other_out(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "MOST_UNKNOWN", 4)
    monkeypatch.setattr(connection_limits, "WHILE_S", 0.0)
    idle = [connect() for _ in range(12)]
    good = connect()
    good.ask("a")
    assert good.read().startswith(b"HTTP/1.1 200 ")
    assert [client.open for client in idle].count(True) <= 4
    again = [connect() for _ in range(12)]
    good.ask("a")  # whoever is known stays
    assert good.read().startswith(b"HTTP/1.1 200 ")
    assert again


def test_in_a_burst_nobody_is_left_out(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "MOST_UNKNOWN", 4)
    monkeypatch.setattr(connection_limits, "WHILE_S", 60.0)
    burst = [connect() for _ in range(20)]
    for client in burst:
        client.ask("a")
    assert all(client.read().startswith(b"HTTP/1.1 200 ") for client in burst)


def test_there_is_an_end_to_a_burst(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 8)
    monkeypatch.setattr(connection_limits, "WHILE_S", 60.0)
    burst = [connect() for _ in range(20)]
    assert [client.open for client in burst] == [False] * 12 + [True] * 8


def test_a_client_that_shows_no_key_is_dropped_soon(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "UNKNOWN_S", 0.2)
    silent, known = connect(), connect()
    known.ask("a")
    assert known.read().startswith(b"HTTP/1.1 200 ")
    silent.socket.sendall(b"GET / HTTP/1.1\r\n")
    assert silent.read() == b""
    assert known.open


def test_the_connections_of_one_owner_are_bounded(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "MOST_OF_ONE", 2)
    first, busy, other = connect(), connect(), connect()
    first.ask("a")
    assert first.read()
    busy.ask("a", "/slow")
    third = connect()
    third.ask("a")  # the idle one gives way
    assert third.read().startswith(b"HTTP/1.1 200 ")
    assert not first.open
    third.ask("a", "/slow")
    fourth = connect()
    fourth.ask("a")
    assert fourth.read().startswith(b"HTTP/1.1 429 ")
    other.ask("b")
    assert other.read().startswith(b"HTTP/1.1 200 ")


def test_a_full_server_closes_a_connection_of_whoever_has_most(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(connection_limits, "MOST_OF_ONE", 3)
    hog = [connect()]
    hog[0].ask("hog", "/slow")
    assert hog[0].open
    # Of three places one owner may have no more than half: one.
    more = connect()
    more.ask("hog", "/slow")
    assert more.read().startswith(b"HTTP/1.1 429 ")
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 16)
    hog += [connect(), connect()]
    for client in hog[1:]:
        client.ask("hog", "/slow")
    assert all(client.open for client in hog)
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 3)
    good = connect()
    good.ask("good")
    assert good.read().startswith(b"HTTP/1.1 200 ")
    assert [client.open for client in hog] == [True, True, False]
    next_one = connect()
    next_one.ask("third")  # an idle connection goes before one in use
    assert next_one.read().startswith(b"HTTP/1.1 200 ")
    assert not good.open
    assert [client.open for client in hog[:2]] == [True, True]


POST = b"content-length: %d\r\n\r\n"


def test_the_bodies_of_one_owner_are_bounded(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_BODIES", 1000)
    waiting, second, other, same = connect(), connect(), connect(), connect()
    waiting.ask("a", "/slow", POST % 800 + b"x" * 800)
    assert waiting.open
    second.ask("a", "/", POST % 300 + b"x" * 300)
    assert second.read().startswith(b"HTTP/1.1 429 ")
    other.ask("b", "/", POST % 300 + b"x" * 300)
    assert other.read().startswith(b"HTTP/1.1 200 ")
    for _ in range(10):  # what is answered does not count
        same.ask("b", "/", POST % 900 + b"x" * 900)
        assert same.read().startswith(b"HTTP/1.1 200 ")


def test_a_long_body_without_a_key_is_refused_unread(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MOST_UNKNOWN_BODY", 100)
    client = connect()
    client.ask("", "/", POST % 5000 + b"x" * 101)
    assert client.read().startswith(b"HTTP/1.1 401 ")
    assert client.read() == b""


def test_a_fault_of_the_gateway_is_a_500_and_nobody_waits(connect: Any) -> None:
    client = connect()
    client.ask("a", "/breaks")
    reply = client.read()
    assert reply.startswith(b"HTTP/1.1 500 ")
    assert b"KeyError: 'a hole'" in reply
    assert client.read() == b""


def test_there_are_fewer_connections_than_files_may_be_open() -> None:
    """A limit that may be raised is; one that may not bounds the connections."""
    code = "import coterie.extras.gateway.connection_limits as c; print(c.ConnectionLimits().limit)"
    run = [sys.executable, "-c", code]
    hard = subprocess.run(
        ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *run], capture_output=True, text=True
    )
    assert hard.stdout.strip() == "64", hard.stderr
    raised = subprocess.run(
        ["sh", "-c", 'ulimit -Sn 256; exec "$@"', "sh", *run], capture_output=True, text=True
    )
    assert int(raised.stdout) >= 64
