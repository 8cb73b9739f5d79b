"""A real HTTP server on loopback that misbehaves on command."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from coterie.datatypes import Problem, Prompt
from coterie.envs.bytes_codec import BytesCodec
from coterie.experts.server import ServerPolicy
from coterie.experts.settings import ServerSettings

Behaviour = Callable[["Exchange"], Awaitable[None]]


@dataclass
class Exchange:
    """One request as the server saw it, and the way back."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter
    connection: int

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    async def send(
        self,
        body: bytes,
        status: str = "200 OK",
        content_type: str = "application/json",
        **headers: str,
    ) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if not any(name.replace("_", "-") == "content-length" for name in headers):
            lines.append(f"content-length: {len(body)}")
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await self.writer.drain()


@dataclass
class Server:
    """Plays ``script`` request by request, and its last entry from then on."""

    script: list[Behaviour] = field(default_factory=list, repr=False)
    requests: list[Exchange] = field(default_factory=list, repr=False)
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""
    handlers: set[asyncio.Task[None]] = field(default_factory=set, repr=False)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.handlers.add(task)
        self.connections += 1
        number = self.connections
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")[:-2]
                headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = first.split(" ")
                exchange = Exchange(method, path, headers, body, writer, number)
                self.requests.append(exchange)
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    place = min(len(self.requests), len(self.script)) - 1
                    await self.script[place](exchange)
                finally:
                    self.in_flight -= 1
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.handlers.discard(task)
            writer.close()

    @staticmethod
    def body(content: Any = "Answer: 4", **choice: Any) -> bytes:
        """A chat completion: 11 tokens read, 5 generated."""
        choice = {"message": {"role": "assistant", "content": content}} | choice
        usage = {"prompt_tokens": 11, "completion_tokens": 5}
        choices = [{"finish_reason": "stop"} | choice]
        return json.dumps({"choices": choices, "usage": usage}).encode()

    @classmethod
    def says(cls, content: Any = "Answer: 4", **choice: Any) -> Behaviour:
        return cls.sends(cls.body(content, **choice))

    @staticmethod
    def sends(body: bytes = b"", **headers: str) -> Behaviour:
        async def behave(exchange: Exchange) -> None:
            await exchange.send(body, **headers)

        return behave


@pytest.fixture
def codec() -> BytesCodec:
    return BytesCodec()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    state = Server(script=[Server.says()])
    listener = await asyncio.start_server(state.serve, "127.0.0.1", 0)
    state.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield state
    listener.close()
    for task in list(state.handlers):
        task.cancel()
    await asyncio.gather(*state.handlers, return_exceptions=True)
    await listener.wait_closed()


@pytest.fixture
async def policy(
    server: Server, codec: BytesCodec, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., ServerPolicy]]:
    """Makes policies for the server, with small waits, and closes them."""
    made: list[ServerPolicy] = []

    def make(environ: dict[str, str] | None = None, **settings: Any) -> ServerPolicy:
        fast = {
            "base_url": server.url,
            "model": "m",
            "backoff_s": 0.002,
            "max_backoff_s": 0.01,
            "connect_timeout_s": 1.0,
            "read_timeout_s": 1.0,
            "timeout_s": 2.0,
        }
        for name, value in (environ or {}).items():
            monkeypatch.setenv(name, value)
        made.append(ServerPolicy(ServerSettings(**(fast | settings)), codec))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()


@pytest.fixture
def ask() -> Callable[..., Prompt]:
    def prompt(
        text: str = "2 + 2 = ?", seed: int = 7, agent: str = "expert_0", **more: Any
    ) -> Prompt:
        tokens = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8).astype(np.int64)
        return Prompt(tokens=tokens, text=text, agent=agent, seed=seed, **more)

    return prompt


@pytest.fixture
def four() -> Problem:
    return Problem(id="p4", question="2 + 2 = ?", gold="4", kind="number")
