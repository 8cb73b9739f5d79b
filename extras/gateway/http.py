"""A small HTTP server for this machine's own programs, in which everything has a bound."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

import httptools

from coterie.envs.guarded import describe
from coterie.extras.gateway.places import Holder, NoPlace, Places

MOST_BODY = 8 << 20
"""Bytes of a request's body."""
MOST_UNKNOWN_BODY = 64 << 10
"""Bytes of the body of a request that has no key of a living episode."""
MOST_BODIES = 64 << 20
"""Bytes of all requests of one owner that are not answered yet."""
MOST_HEADERS = 32 << 10
"""Bytes of a request's headers."""
SLOW_S = 60.0
"""Seconds that a client may take until a request is whole, or to read what it is sent."""
UNKNOWN_S = 5.0
"""Seconds that a client without a key may take until the headers of a request are whole."""


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case names."""
    body: bytes
    here: Callable[[], bool]
    """Whether the client still listens."""


@dataclass
class Reply:
    """What is sent back: a body, or a stream."""

    status: int
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: Callable[[], None] = lambda: None
    """Called when all of it has been sent to a client that listens."""


Handler = Callable[[Asked], Awaitable[Reply]]


class Server:
    """Answers requests on a port of loopback that the system chooses."""

    def __init__(
        self,
        handler: Handler,
        refusal: Callable[[int, str], Reply],
        owner: Callable[[Mapping[str, str]], Hashable] = lambda headers: "",
    ) -> None:
        """
        Args:
            handler: answers one request.
            refusal: what is sent for (status, sentence) where there is no request to answer.
            owner: says by a request's headers who sends it; None: nobody known.
        """
        self.handler, self.refusal, self.owner = handler, refusal, owner
        self.connections: set[_Connection] = set()
        self.places: Places[_Connection] = Places()
        self._listening: asyncio.Server | None = None

    async def start(self) -> str:
        """Begin to listen; gives ``http://127.0.0.1:PORT``."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", 0, backlog=1024
        )
        host, port = self._listening.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def forget(self, owner: Hashable) -> None:
        """The owner is known no more: its idle connections are closed."""
        for connection in self.places.forget(owner):
            connection.give_way(busy=False)

    def close(self) -> None:
        """Listen no more, and leave all clients."""
        if self._listening is not None:
            self._listening.close()
        for connection in tuple(self.connections):
            connection.leave()


@dataclass
class _Arrived:
    """A request that is whole, or why there is none."""

    asked: Asked | None
    refusal: Reply | None
    chunks: bool
    """Whether a stream may be sent in chunks; it ends with the connection otherwise."""
    keep: bool
    """Whether the connection may have another request."""


class _Connection(asyncio.Protocol):
    """One client: a request after the other, each answered before the next."""

    _transport: asyncio.Transport
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[_Arrived] = deque()
        self._task: asyncio.Task[None] | None = None
        self._here, self._over = True, False
        self.holder: Holder[_Connection] | None = None
        """Whose it is; None: nobody's that is known."""
        self._received = 0
        self._kept = 0
        """Bytes of bodies that are not answered yet."""
        self._writable: asyncio.Event | None = None
        self.on_message_begin()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connections.add(self)
        for oldest in self._server.places.arrive(self):
            oldest.give_way()
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._here = False
        self._server.connections.discard(self)
        self._keep(-self._kept)
        self._server.places.leave(self)
        self._in_time()
        self.resume_writing()

    def eof_received(self) -> bool:
        self._here = False
        return self._task is not None  # what it has asked is still answered

    def pause_writing(self) -> None:
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # What it asked is answered in HTTP, and what follows is not read.
            self._over = True
            for arrived in self._waiting:
                arrived.keep = False
        except httptools.HttpParserError as error:
            self._refuse(400, f"this is no HTTP: {error}")
        if not self._whole_headers and self._received > MOST_HEADERS:
            self._refuse(431, f"a request's headers must be at most {MOST_HEADERS:,} bytes")
        elif self._received > MOST_HEADERS + MOST_BODY:
            self._refuse(413, f"a request's body must be at most {MOST_BODY:,} bytes")

    def leave(self) -> None:
        """Drop the client."""
        self._transport.abort()

    @property
    def idle(self) -> bool:
        """Whether nothing is asked on it."""
        return self._task is None and not self._begun

    def give_way(self, *, busy: bool = True) -> None:
        """Others need its place; ``busy``: even if something is asked on it."""
        if self.idle:
            self._over = True
            self._transport.close()
        elif busy:
            self._transport.abort()

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._url, self._body = bytearray(), bytearray()
        self._headers: dict[str, str] = {}
        self._whole_headers = self._begun = False
        self._denied = ""
        """Why its owner may have no other connection."""

    def on_url(self, url: bytes) -> None:
        self._begun = True
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._whole_headers:  # else it stands behind the body
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._whole_headers, self._received = True, 0
        self._claim(self._server.owner(self._headers))
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if self._over:
            return
        self._body += body
        self._keep(len(body))
        if self.holder is None:
            if len(self._body) > MOST_UNKNOWN_BODY:
                why = self._denied or "this key opens nothing, and the body is long"
                self._refuse(429 if self._denied else 401, why)
        elif self.holder.bytes > MOST_BODIES:
            self._refuse(429, f"requests of {MOST_BODIES:,} bytes are under way in this episode")

    def on_message_complete(self) -> None:
        self._received, self._begun = 0, False
        if self._over:
            return
        if self._denied:
            self._refuse(429, self._denied)
            return
        if len(self._body) > MOST_BODY:
            self._refuse(413, f"a request's body must be at most {MOST_BODY:,} bytes")
            return
        path = self._url.decode("latin-1").partition("?")[0]
        method = self._parser.get_method().decode("latin-1")
        asked = Asked(method, path, self._headers, bytes(self._body), self._listens)
        chunks = self._parser.get_http_version() == "1.1"
        keep = self._parser.should_keep_alive()
        self._arrive(_Arrived(asked, None, chunks, keep))
        if len(self._waiting) > 1:
            self._transport.pause_reading()  # a client that does not wait

    def _claim(self, owner: Hashable) -> None:
        """Whoever sends this request has the connection from now on."""
        places, before = self._server.places, self.holder
        try:
            gone = places.claim(self, owner)
        except NoPlace as why:
            self._denied = str(why)  # when the request is whole, so that the client reads it
            return
        for other in gone:
            other.give_way()
        if self.holder is not before:
            if before is not None:
                before.bytes -= self._kept
            if self.holder is not None:
                self.holder.bytes += self._kept
                self._expect()  # it is known: it has longer for the rest

    def _keep(self, count: int) -> None:
        self._kept += count
        if self.holder is not None:
            self.holder.bytes += count

    def _listens(self) -> bool:
        return self._here and not self._transport.is_closing()

    def _refuse(self, status: int, sentence: str) -> None:
        if not self._over:
            self._over = True
            self._arrive(_Arrived(None, self._server.refusal(status, sentence), True, False))

    def _arrive(self, arrived: _Arrived) -> None:
        self._in_time()
        self._waiting.append(arrived)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._answer())

    async def _answer(self) -> None:
        """Answer what has arrived."""
        try:
            while self._waiting:
                arrived = self._waiting.popleft()
                await self._send(arrived, await self._reply(arrived))
                await self._drained()
                if arrived.asked is not None:
                    self._keep(-len(arrived.asked.body))
                if not arrived.keep or not self._here:
                    self._close()
                    return
            self._transport.resume_reading()
            self._expect()
        except Exception:
            self._transport.abort()  # the client is gone, or too slow; nobody is left waiting
        finally:
            self._task = None

    async def _reply(self, arrived: _Arrived) -> Reply:
        if arrived.asked is None:
            assert arrived.refusal is not None
            return arrived.refusal
        try:
            return await self._server.handler(arrived.asked)
        except Exception as error:
            arrived.keep = False
            return self._server.refusal(500, f"the gateway failed: {describe(error)}")

    async def _send(self, arrived: _Arrived, reply: Reply) -> None:
        chunks = arrived.chunks and reply.stream is not None
        headers = {"content-type": reply.kind, **reply.headers}
        if chunks:
            headers["transfer-encoding"] = "chunked"
        elif reply.stream is None:
            headers["content-length"] = str(len(reply.body))
        if not arrived.keep or (reply.stream is not None and not chunks):
            arrived.keep = False
            headers["connection"] = "close"
        phrase = HTTPStatus(reply.status).phrase
        lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        if reply.stream is None:
            bare = arrived.asked is not None and arrived.asked.method == "HEAD"
            self._write(head if bare else head + reply.body, reply)
            return
        self._write(head)
        try:
            async for part in reply.stream:
                self._write(b"%x\r\n%s\r\n" % (len(part), part) if chunks else part)
                await self._drained()
        finally:
            with suppress(Exception):
                await reply.stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
        self._write(b"0\r\n\r\n" if chunks else b"", reply)

    def _write(self, data: bytes, last_of: Reply | None = None) -> None:
        """Send ``data``, which may be the last of a reply."""
        if self._transport.is_closing():
            raise ConnectionResetError
        self._transport.write(data)
        if last_of is not None and self._listens():
            # Before anything else runs: the program may go on as soon as it has read this.
            last_of.sent()

    async def _drained(self) -> None:
        """Wait until the client has read most of what it was sent."""
        if self._writable is not None:
            async with asyncio.timeout(SLOW_S):
                await self._writable.wait()

    def _close(self) -> None:
        self._over = True
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._deadline = asyncio.get_running_loop().call_later(SLOW_S, self._transport.abort)

    def _expect(self) -> None:
        """The client has a while for its next request, and to read what it was sent."""
        self._in_time()
        seconds = SLOW_S if self.holder is not None else min(UNKNOWN_S, SLOW_S)
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._transport.abort)

    def _in_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
