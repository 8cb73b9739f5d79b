"""The server by itself, spoken to in bytes."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from coterie.extras.gateway import http
from coterie.extras.gateway.http import HttpRequest, Reply, Server

Send = Callable[..., bytes]


async def echo(request: HttpRequest) -> Reply:
    """Says what it was asked; ``/stream`` in two parts."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    if request.path == "/stream":
        return Reply(200, stream=parts(), kind="text/plain")
    if request.path == "/breaks":
        raise KeyError("a hole")
    if request.path == "/slow":
        await asyncio.sleep(1)
    said = (
        f"{request.method} {request.path} {len(request.body)} {request.headers.get('x-mark', '-')}"
    )
    return Reply(200, said.encode(), kind="text/plain")


def refusal(status: int, sentence: str) -> Reply:
    return Reply(status, sentence.encode(), kind="text/plain")


@pytest.fixture
def port() -> Iterator[int]:
    """Where a server listens, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Server(echo, refusal)
    url = asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    yield int(url.rpartition(":")[2])

    async def end() -> None:
        server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    asyncio.run_coroutine_threadsafe(end(), loop).result(5)
    loop.call_soon_threadsafe(loop.call_later, 0.05, loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def send(port: int) -> Send:
    """Sends pieces of bytes; returns all that comes until the server closes or is silent."""

    def sent(*pieces: bytes, silence_s: float = 0.3) -> bytes:
        got = bytearray()
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.settimeout(silence_s)
            for piece in pieces:
                connection.sendall(piece)
                try:
                    while data := connection.recv(1 << 16):
                        got += data
                    got += b"<closed>"
                    break
                except TimeoutError:
                    continue
        return bytes(got)

    return sent


def answer(body: bytes, more: bytes = b"") -> bytes:
    length = b"content-length: %d\r\n" % len(body)
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n" + length + more + b"\r\n" + body


CLOSE = b"connection: close\r\n"
STREAMED = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((b"GET /a?b=c HTTP/1.1\r\nX-Mark: m\r\n\r\n",), answer(b"GET /a 0 m")),
        # Two requests in one piece are answered in turn; a third, later, on the same connection.
        (
            (
                b"GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\ncontent-length: 2\r\n\r\nxy",
                b"GET /c HTTP/1.1\r\n\r\n",
            ),
            answer(b"GET /a 0 -") + answer(b"POST /b 2 -") + answer(b"GET /c 0 -"),
        ),
        # A body in chunks; a header behind it is none of the request's.
        (
            (
                b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
                b"2\r\nde\r\n0\r\nx-mark: late\r\n\r\n",
            ),
            answer(b"POST /a 5 -"),
        ),
        (
            (b"POST /a HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n", b"x"),
            b"HTTP/1.1 100 Continue\r\n\r\n" + answer(b"POST /a 1 -"),
        ),
        (
            (b"GET /a HTTP/1.1\r\nconnection: close\r\n\r\n",),
            answer(b"GET /a 0 -", CLOSE) + b"<closed>",
        ),
        ((b"GET /a HTTP/1.0\r\n\r\n",), answer(b"GET /a 0 -", CLOSE) + b"<closed>"),
        ((b"HEAD /a HTTP/1.1\r\n\r\n",), answer(b"HEAD /a 0 -")[: -len(b"HEAD /a 0 -")]),
        # Another protocol is not spoken: the request is answered, what follows is not read.
        (
            (b"GET /a HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\nPRI *",),
            answer(b"GET /a 0 -", CLOSE) + b"<closed>",
        ),
        (
            (b"GET /stream HTTP/1.1\r\n\r\n",),
            STREAMED + b"transfer-encoding: chunked\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n",
        ),
        (
            (b"GET /stream HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",),
            STREAMED + CLOSE + b"\r\none two<closed>",
        ),
    ],
)
def test_replies(send: Send, pieces: tuple[bytes, ...], expected: bytes) -> None:
    assert send(*pieces) == expected


@pytest.mark.parametrize(
    ("request_bytes", "status", "says"),
    [
        (b"nonsense\r\n\r\n", 400, b"this is no HTTP"),
        (b"GET /" + b"x" * 400 + b" HTTP/1.1\r\n", 431, b"at most 300 bytes"),
        (b"POST / HTTP/1.1\r\ncontent-length: 101\r\n\r\n" + b"x" * 101, 413, b"at most 100"),
        # Chunks of a body that never ends.
        (
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100,
            413,
            b"at most 100",
        ),
        # A trailer that never ends.
        (
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: " + b"x" * 500,
            413,
            b"at most 100",
        ),
    ],
)
def test_refusals_close_the_connection(
    send: Send, monkeypatch: pytest.MonkeyPatch, request_bytes: bytes, status: int, says: bytes
) -> None:
    monkeypatch.setattr(http, "MOST_HEADERS", 300)
    monkeypatch.setattr(http, "MOST_BODY", 100)
    got = send(request_bytes, b"1\r\nx\r\n" * 100)
    assert got.startswith(b"HTTP/1.1 %d " % status)
    assert says in got
    assert got.endswith(b"<closed>")


def test_a_fault_of_the_gateway_is_a_500_and_nobody_waits(send: Send) -> None:
    got = send(b"GET /breaks HTTP/1.1\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 500 ")
    assert b"KeyError: 'a hole'" in got


@pytest.fixture(params=["of a server", "of the open files"])
def two_connections(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that start from now on have two connections."""
    if request.param == "of a server":
        monkeypatch.setattr(http, "MOST_CONNECTIONS", 2)
    else:
        monkeypatch.setattr(http, "_allow_open_files", lambda: 8)


@pytest.mark.usefixtures("two_connections")
def test_too_many_connections_close_the_oldest_idle_one(port: int) -> None:
    def connect(path: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port), timeout=5)
        connection.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        return connection

    with connect("/slow") as busy, connect("/a") as idle:
        assert idle.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        with connect("/b") as late:
            assert late.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert idle.recv(1) == b""
        assert busy.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_a_reply_counts_as_sent_only_to_a_client_that_still_listens() -> None:
    """``sent`` is what tells a delivered answer from a lost one."""
    delivered: list[str] = []

    async def handler(request: HttpRequest) -> Reply:
        await asyncio.sleep(0.2)
        return Reply(200, sent=lambda: delivered.append(request.path))

    async def ask() -> Any:
        server = Server(handler, refusal)
        url = await server.start()
        for path in ("/left", "/stayed"):
            reader, writer = await asyncio.open_connection("127.0.0.1", url.rpartition(":")[2])
            writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            if path == "/left":
                await asyncio.sleep(0.05)
                writer.transport.abort()
                await asyncio.sleep(0.3)
            else:
                await reader.readuntil(b"\r\n\r\n")
                writer.close()
        server.close()
        await asyncio.sleep(0.05)

    asyncio.run(ask())
    assert delivered == ["/stayed"]
