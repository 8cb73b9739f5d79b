"""A small HTTP server for this machine's own programs, in which everything has a bound."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import h11

MOST_BODY = 8 << 20
"""Bytes of a request's body."""
MOST_HEADERS = 32 << 10
"""Bytes of its headers."""
MOST_CONNECTIONS = 1024
SLOW_S = 60.0
"""Seconds that a client may take until a request is whole, or to read what it is sent."""


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

    def __init__(self, handler: Handler, refusal: Callable[[int, str], Reply]) -> None:
        """
        Args:
            handler: answers one request; it raises nothing.
            refusal: what is sent for (status, sentence) where there is no request to answer.
        """
        self._handler, self._refusal = handler, refusal
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self) -> str:
        """Begin to listen; gives ``http://127.0.0.1:PORT``."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADERS)
        try:
            if self._open > MOST_CONNECTIONS:
                await self._send(connection, reader, writer, self._refusal(503, "too busy"))
                return
            while await self._answer(connection, reader, writer):
                connection.start_next_cycle()
        except (OSError, TimeoutError, h11.LocalProtocolError):
            writer.transport.abort()  # the client is gone, or too slow
        finally:
            self._open -= 1
            writer.close()
            if writer.transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(SLOW_S, writer.transport.abort)

    async def _answer(
        self,
        connection: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """One request; whether the connection may have another."""
        try:
            async with asyncio.timeout(SLOW_S):
                asked = await self._read(connection, reader, writer)
        except h11.RemoteProtocolError as error:
            reply = self._refusal(error.error_status_hint, f"this is no HTTP: {error}")
        except _TooLong:
            reply = self._refusal(413, f"a request's body must be at most {MOST_BODY:,} bytes")
        else:
            if asked is None:
                return False
            reply = await self._handler(asked)
        await self._send(connection, reader, writer, reply)
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    async def _read(
        self,
        connection: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> Asked | None:
        """The next request; None where the client has closed."""
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if connection.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    writer.write(connection.send(go_on) or b"")
                connection.receive_data(await reader.read(1 << 16))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MOST_BODY:
                    raise _TooLong
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in request.headers}
                method, target = request.method.decode(), request.target.decode("latin-1")
                here = lambda: not (reader.at_eof() or writer.transport.is_closing())  # noqa: E731
                return Asked(method, target.partition("?")[0], headers, bytes(body), here)
            else:
                return None

    async def _send(
        self,
        connection: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        reply: Reply,
    ) -> None:
        if connection.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        length = [] if reply.stream else [("content-length", str(len(reply.body)))]
        headers = [("content-type", reply.kind), *length, *reply.headers.items()]
        start = h11.Response(status_code=reply.status, headers=headers)

        def here() -> bool:
            return not (reader.at_eof() or writer.transport.is_closing())

        async def write(*events: h11.Event, last: bool = False) -> None:
            writer.write(b"".join(connection.send(event) or b"" for event in events))
            if last and here():
                # Before anything else runs: the program may go on as soon as it has read this.
                reply.sent()
            if writer.transport.get_write_buffer_size():
                async with asyncio.timeout(SLOW_S):
                    await writer.drain()

        if reply.stream is None:
            await write(start, h11.Data(data=reply.body), h11.EndOfMessage(), last=True)
            return
        await write(start)
        try:
            async for part in reply.stream:
                await write(h11.Data(data=part))
        finally:
            with suppress(Exception):
                await reply.stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
        await write(h11.EndOfMessage(), last=True)


class _TooLong(Exception):
    """A body that is longer than bodies may be."""
