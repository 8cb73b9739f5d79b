"""The endpoint that programs talk to: one server for all episodes of this process."""

import asyncio
import atexit
import hashlib
import os
import secrets
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import orjson

from coterie.extras.gateway import anthropic, chat, fields, responses
from coterie.extras.gateway.gate import Gate
from coterie.extras.gateway.http import Asked, Reply, Server
from coterie.extras.gateway.messages import Answer, Message, Refused, Request
from coterie.extras.gateway.session import Call, Session

T = TypeVar("T")

_KEEPALIVE_S = 10.0
_DEAD_KEYS = 4096
"""Keys of ended episodes that are remembered, so that a late call is told why."""
_HOME = "127.0.0.1"


@dataclass(frozen=True)
class Key:
    """What a key opens."""

    session: Session
    role: str
    """The one that is asked, whatever model a request names; "": the model says."""


class Gateway:
    """The server of this process. It and all that programs touch live in an event loop in a thread
    of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.proven: set[str] = set()
        """Programs that have asked somebody something."""
        self._keys: dict[str, Key] = {}
        self._dead: deque[str] = deque(maxlen=_DEAD_KEYS)
        self._conversations: dict[str, tuple[Session, tuple[Message, ...]]] = {}
        """What ``previous_response_id`` names, of live episodes."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: dict[asyncio.AbstractEventLoop, list[Coroutine[Any, Any, None]]] = {}
        self._gates: dict[asyncio.AbstractEventLoop, Gate] = {}
        threading.Thread(target=self.loop.run_forever, daemon=True, name="gateway").start()
        self._server = Server(self._handle, _refusal)
        self.url = self.submit(self._server.start()).result()
        _leave_out_proxies()
        atexit.register(self.close)

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Do ``work`` in the gateway's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin ``work``, which fails nowhere, in the gateway's loop; to be called in the loop that
        plays. What it starts in one round is handed over at once: each time, threads change."""
        player = asyncio.get_running_loop()
        self._starting.setdefault(player, []).append(work)
        if len(self._starting[player]) == 1:
            player.call_soon(self._hand_over, player)

    def _hand_over(self, player: asyncio.AbstractEventLoop) -> None:
        def begin() -> None:
            for work in works:
                task = self.loop.create_task(work)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        works = self._starting.pop(player)
        self.loop.call_soon_threadsafe(begin)

    def gate(self, player: asyncio.AbstractEventLoop, gather_s: float) -> Gate:
        """That of the episodes which ``player`` plays."""
        if player not in self._gates:
            self._gates = {loop: g for loop, g in self._gates.items() if not loop.is_closed()}
            self._gates[player] = Gate(player, gather_s)
        return self._gates[player]

    def open(self, session: Session) -> dict[str, str]:
        """Keys for an episode, by role; of "" is the one with which a request's model names the
        role. To be called in the gateway's loop, as :meth:`shut`."""
        keys = {role: f"sk-coterie-{secrets.token_urlsafe(32)}" for role in ("", *session.roles)}
        self._keys |= {key: Key(session, role) for role, key in keys.items()}
        return keys

    def shut(self, session: Session, keys: Iterable[str]) -> None:
        """The episode's keys open nothing any more."""
        for gate in self._gates.values():
            gate.leave(session)
        for key in keys:
            self._keys.pop(key, None)
            self._dead.append(key)
        for name in [n for n, (of, _) in self._conversations.items() if of is session]:
            del self._conversations[name]

    def close(self) -> None:
        """End all programs, and the server."""

        async def end() -> None:
            for session in {key.session for key in self._keys.values()}:
                session.stop()
            self._server.close()

        if self.loop.is_running():
            self.submit(end()).result(timeout=10)

    async def _handle(self, asked: Asked) -> Reply:
        try:
            return await self._route(asked)
        except Refused as refused:
            return _refusal(refused.status, refused.sentence)

    async def _route(self, asked: Asked) -> Reply:
        key = self._key(asked)
        path = asked.path.rstrip("/").removeprefix("/v1")
        if asked.method == "GET" and path == "/models":
            models = [{"id": r, "object": "model", "created": 0, "owned_by": "coterie"}
                      for r in key.session.roles]  # fmt: skip
            return _reply({"object": "list", "data": models, "has_more": False})
        wires: Mapping[str, Callable[[Asked, Key], Any]] = {
            "/chat/completions": self._chat,
            "/messages": self._anthropic,
            "/responses": self._responses,
        }
        if path not in wires:
            known = ", ".join(f"/v1{name}" for name in ("/models", *wires))
            raise Refused(404, f"there is no {asked.path[:80]}; known: {known}")
        if asked.method != "POST":
            raise Refused(405, f"{asked.path} takes POST")
        return await wires[path](asked, key)

    async def _chat(self, asked: Asked, key: Key) -> Reply:
        body = fields.read_body(asked.body)
        request = chat.read(body)
        options = body.get("stream_options")
        with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        events = partial(chat.events, with_usage=with_usage)
        return await self._answered(asked, key, request, chat.write, events)

    async def _anthropic(self, asked: Asked, key: Key) -> Reply:
        request = anthropic.read(fields.read_body(asked.body))
        return await self._answered(asked, key, request, anthropic.write, anthropic.events)

    async def _responses(self, asked: Asked, key: Key) -> Reply:
        body = fields.read_body(asked.body)
        earlier: tuple[Message, ...] = ()
        if (name := body.get("previous_response_id")) is not None:
            session, earlier = self._conversations.get(str(name), (None, ()))
            if session is not key.session:
                raise Refused(404, "previous_response_id names no response of this episode")
        request = responses.read(body, earlier)

        def remember(answer: Answer) -> None:
            if body.get("store") is not False and key.session.ended is None:
                whole = (*request.messages, answer.message())
                self._conversations[f"resp_{answer.id}"] = (key.session, whole)

        return await self._answered(
            asked, key, request, responses.write, responses.events, remember
        )

    async def _answered(
        self,
        asked: Asked,
        key: Key,
        request: Request,
        write: Callable[[Answer, str], dict[str, Any]],
        events: Callable[[Answer, str], Iterator[bytes]],
        remember: Callable[[Answer], None] = lambda answer: None,
    ) -> Reply:
        role = _role(key, request)
        if not request.messages or request.messages[-1].speaker == "assistant":
            raise Refused(400, "the last message must be somebody else's than the assistant's")
        name = hashlib.blake2b(asked.path.encode() + b"\0" + asked.body).digest()
        retry = asked.headers.get("x-stainless-retry-count", "0") != "0"
        call = key.session.ask(role, request, name, asked.here, retry=retry)

        def sent() -> None:
            call.delivered |= call.answer.done() and not call.answer.exception()

        if request.stream:
            stream = _streamed(call, request.model, events, remember)
            return Reply(200, stream=stream, kind="text/event-stream", sent=sent)
        answer = await asyncio.shield(call.answer)
        remember(answer)
        reply = _reply(write(answer, request.model))
        reply.sent = sent
        return reply

    def _key(self, asked: Asked) -> Key:
        given = asked.headers.get("authorization", "")
        word = given[7:].strip() if given[:7].lower() == "bearer " else ""
        word = word or asked.headers.get("x-api-key", "")
        if (key := self._keys.get(word)) is not None:
            return key
        if word in self._dead:
            raise Refused(409, "this key's episode has ended")
        raise Refused(401, "this key opens nothing: take the one that the program was given")


def _role(key: Key, request: Request) -> str:
    roles = key.session.roles
    if key.role:
        return key.role
    if len(roles) == 1:
        return roles[0]
    if request.model not in roles:
        raise Refused(
            404,
            f"the model {request.model[:80]!r} is none of the roles {', '.join(roles)}; name one, "
            "or use the key of one role",
        )
    return request.model


async def _streamed(
    call: Call,
    model: str,
    events: Callable[[Answer, str], Iterator[bytes]],
    remember: Callable[[Answer], None],
) -> AsyncIterator[bytes]:
    while not call.answer.done():
        await asyncio.wait({call.answer}, timeout=_KEEPALIVE_S)
        if not call.answer.done():
            yield b": waiting\n\n"
    if (refused := call.answer.exception()) is not None:
        sentence = refused.sentence if isinstance(refused, Refused) else "it failed"
        yield fields.event(_error(500, sentence), "error")
        return
    remember(call.answer.result())
    for event in events(call.answer.result(), model):
        yield event


def _reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, orjson.dumps(value), headers=headers or {})


def _refusal(status: int, sentence: str) -> Reply:
    # Asked again it would be refused again; clients of these wires read the header.
    return _reply(_error(status, sentence), status, {"x-should-retry": "false"})


def _error(status: int, sentence: str) -> dict[str, Any]:
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "api_error")
    error = {"type": kind, "message": f"{sentence}.", "code": None, "param": None}
    return {"type": "error", "error": error}


def _leave_out_proxies() -> None:
    """Programs reach this machine directly, whatever proxy the environment names."""
    for name in ("NO_PROXY", "no_proxy"):
        known = os.environ.get(name, "")
        if known != "*" and _HOME not in known.split(","):
            os.environ[name] = f"{known},{_HOME}".lstrip(",")


@cache
def gateway() -> Gateway:
    """The one of this process, started when first needed."""
    return Gateway()
