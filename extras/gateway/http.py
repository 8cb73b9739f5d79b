"""A small HTTP server for programs on this machine."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

import httptools

from coterie.datatypes import cause_of

try:
    import resource
except ImportError:  # not on this system
    resource = None

MOST_CONNECTIONS = 2048
"""Most open connections, or a quarter of the limit of open files, if that is less. One more closes
the oldest idle one."""
MOST_BODY = 8 << 20
"""Bytes in the body of a request."""
MOST_HEADERS = 32 << 10
"""Bytes in the headers of a request."""
SLOW_S = 60.0
"""Seconds that a client may take to send a request, or to read a reply."""
_OPEN_FILES = 8192
"""Open files of this process: connections, the programs' own ends of them, pipes of commands."""


@dataclass(frozen=True)
class HttpRequest:
    """One request."""

    method: str
    path: str
    version: str
    headers: Mapping[str, str]
    """Lower-case name -> value."""
    body: bytes
    is_connected: Callable[[], bool]
    """Whether the client still waits for the reply."""


@dataclass
class Reply:
    """The response to a request: a body, or a stream."""

    status: int
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: Callable[[], None] = lambda: None
    """Called once all of it has been sent to a connected client."""


Handler = Callable[[HttpRequest], Awaitable[Reply]]


class Server:
    """Serves HTTP on the loopback interface, on a port that the system chooses."""

    def __init__(self, handler: Handler, refusal: Callable[[int, str], Reply]) -> None:
        """
        Args:
            handler: answers one request.
            refusal: builds the reply to a malformed request from (status, sentence).
        """
        self.handler, self.refusal = handler, refusal
        self.most = min(MOST_CONNECTIONS, _allow_open_files() // 4)
        self.connections: dict[_Connection, None] = {}
        """Oldest first."""
        self._listening: asyncio.Server | None = None

    async def start(self) -> str:
        """Begin to listen; return ``http://127.0.0.1:PORT``."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", 0, backlog=1024
        )
        host, port = self._listening.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def add(self, connection: "_Connection") -> None:
        """Add a new connection, and close the oldest idle one if there are too many."""
        self.connections[connection] = None
        if len(self.connections) > self.most:
            oldest = next(other for other in self.connections if other.idle)
            del self.connections[oldest]
            oldest.abort()

    def close(self) -> None:
        """Stop listening, and drop all clients."""
        if self._listening is not None:
            self._listening.close()
        for connection in tuple(self.connections):
            connection.abort()


class _Connection(asyncio.Protocol):
    """One client. Its requests are answered in order, one at a time."""

    _transport: asyncio.Transport
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[HttpRequest] = deque()
        self._refusal: Reply | None = None
        """What a malformed request gets, after all earlier ones have their replies."""
        self._task: asyncio.Task[None] | None = None
        self._connected, self._input_ended = True, False
        self._received = 0
        """Bytes of the request that is being read."""
        self._writable: asyncio.Event | None = None
        self.on_message_begin()

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.add(self)
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connected = False
        self._server.connections.pop(self, None)
        self._cancel_deadline()
        self.resume_writing()

    def eof_received(self) -> bool:
        self._connected = False
        return self._task is not None  # keep the transport open for the answer

    def pause_writing(self) -> None:
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def data_received(self, data: bytes) -> None:
        if self._input_ended:
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Answer the request in plain HTTP, and ignore the data of the other protocol.
            self._input_ended = True
        except httptools.HttpParserError as error:
            self._refuse(400, f"this is no HTTP: {error}")
        if not self._headers_complete and self._received > MOST_HEADERS:
            self._refuse(431, f"a request's headers must be at most {MOST_HEADERS:,} bytes")
        elif self._received > MOST_HEADERS + MOST_BODY:
            # Trailers and extensions of chunks count, too.
            self._refuse(413, f"a request's body must be at most {MOST_BODY:,} bytes")

    def abort(self) -> None:
        """Drop the client."""
        self._transport.abort()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self._task is None

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        self._url, self._body = bytearray(), bytearray()
        self._headers: dict[str, str] = {}
        self._headers_complete = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._headers_complete:  # trailers after the body could replace the key
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._headers_complete = True
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if not self._input_ended:
            self._body += body
            if len(self._body) > MOST_BODY:
                self._refuse(413, f"a request's body must be at most {MOST_BODY:,} bytes")

    def on_message_complete(self) -> None:
        self._received = 0
        if self._input_ended:
            return
        request = HttpRequest(
            self._parser.get_method().decode("latin-1"),
            self._url.decode("latin-1").partition("?")[0],
            self._parser.get_http_version(),
            self._headers,
            bytes(self._body),
            self._is_connected,
        )
        self._input_ended = not self._parser.should_keep_alive()
        self._queue.append(request)
        self._begin_answering()
        if len(self._queue) > 1:
            self._transport.pause_reading()  # a client that does not wait

    def _is_connected(self) -> bool:
        return self._connected and not self._transport.is_closing()

    def _refuse(self, status: int, sentence: str) -> None:
        if not self._input_ended:
            self._input_ended = True
            self._refusal = self._server.refusal(status, sentence)
            self._begin_answering()

    def _begin_answering(self) -> None:
        self._cancel_deadline()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._answer())

    async def _answer(self) -> None:
        try:
            while self._queue:
                request = self._queue.popleft()
                await self._send(await self._reply(request), request)
            if self._refusal is not None:
                await self._send(self._refusal)
            self._start_deadline()
            if self._input_ended or not self._connected:
                self._transport.close()
            else:
                self._transport.resume_reading()
        except Exception:
            self._transport.abort()  # the client has gone, or reads too slowly
        finally:
            self._task = None

    async def _reply(self, request: HttpRequest) -> Reply:
        try:
            return await self._server.handler(request)
        except Exception as error:
            return self._server.refusal(500, f"the gateway failed: {cause_of(error)}")

    async def _send(self, reply: Reply, request: HttpRequest | None = None) -> None:
        """Send a reply, and wait until the client has read most of it."""
        headers = {"content-type": reply.kind, **reply.headers}
        chunked = request is not None and request.version != "1.0"
        if reply.stream is None:
            headers["content-length"] = str(len(reply.body))
        elif chunked:
            headers["transfer-encoding"] = "chunked"
        else:
            # The end of the connection is the end of the stream.
            self._input_ended = True
            self._queue.clear()
        refusal_follows = request is not None and self._refusal is not None
        if self._input_ended and not self._queue and not refusal_follows:
            headers["connection"] = "close"
        phrase = HTTPStatus(reply.status).phrase
        lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        if reply.stream is None:
            bare = request is not None and request.method == "HEAD"
            self._write(head if bare else head + reply.body, reply)
        else:
            self._write(head)
            try:
                async for part in reply.stream:
                    self._write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
                    await self._drained()
            finally:
                with suppress(Exception):
                    await reply.stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
            self._write(b"0\r\n\r\n" if chunked else b"", reply)
        await self._drained()

    def _write(self, data: bytes, last_of: Reply | None = None) -> None:
        """Send ``data``, which completes the reply ``last_of`` if it is given."""
        if self._transport.is_closing():
            raise ConnectionResetError
        self._transport.write(data)
        if last_of is not None and self._is_connected():
            # Call it before anything else runs: the program goes on as soon as it has read this.
            last_of.sent()

    async def _drained(self) -> None:
        """Wait until the client has read most of the data sent so far."""
        if self._writable is not None:
            async with asyncio.timeout(SLOW_S):
                await self._writable.wait()

    def _start_deadline(self) -> None:
        """Limit the time until the next request, or until a closing client has read its reply."""
        self._deadline = asyncio.get_running_loop().call_later(SLOW_S, self._transport.abort)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _allow_open_files() -> int:
    """Raise this process's limit of open files to :data:`_OPEN_FILES`, or as far as allowed, and
    return it."""
    if resource is None:
        return _OPEN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _OPEN_FILES
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft >= wanted:
        return soft
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft
