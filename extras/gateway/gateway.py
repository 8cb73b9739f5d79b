"""The endpoint that programs call: one server for all episodes of this process."""

import asyncio
import atexit
import os
import secrets
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

try:  # a call takes half the time that it takes in asyncio's own loop
    from uvloop import new_event_loop
except ImportError:  # not on this system
    from asyncio import new_event_loop

from coterie.extras.gateway.command_program import COMMAND
from coterie.extras.gateway.gate import Gate
from coterie.extras.gateway.http import HttpRequest, Reply, Server
from coterie.extras.gateway.messages import Refused
from coterie.extras.gateway.routes import Key, refusal, respond
from coterie.extras.gateway.session import ProgramResult, Session

T = TypeVar("T")

_DEAD_KEYS = 4096
"""Number of ended episodes' keys to remember, so that the refusal of a late call says why."""
_LOOPBACK = "127.0.0.1"
_CLOSING_S = 5.0
"""Seconds for programs and connections to end when the gateway closes."""


class Gateway:
    """The server of this process. The server and all sessions live in an event loop of their own,
    in a thread of its own."""

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self.proven: set[str] = set()
        """Programs that have made a call."""
        self._keys: dict[str, Key] = {}
        self._dead: deque[str] = deque(maxlen=_DEAD_KEYS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: dict[asyncio.AbstractEventLoop, list[Coroutine[Any, Any, None]]] = {}
        self._gates: dict[asyncio.AbstractEventLoop, Gate] = {}
        threading.Thread(target=self.loop.run_forever, daemon=True, name="gateway").start()
        self._server = Server(self._handle, refusal)
        self.url = self.submit(self._server.start()).result()
        _bypass_proxies()
        atexit.register(self.close)

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run ``work`` in the gateway's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start ``work``, which must not raise, in the gateway's loop."""
        # Call this in a player's loop. All work of one round of that loop is handed over together,
        # because each handover switches threads.
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
        """The gate of the episodes that the loop ``player`` plays."""
        if player not in self._gates:
            self._gates = {loop: g for loop, g in self._gates.items() if not loop.is_closed()}
            self._gates[player] = Gate(player, gather_s)
        return self._gates[player]

    def open(self, session: Session) -> dict[str, str]:
        """Role -> its key for an episode. With the key of ``""``, the model of a request names the
        role. Call it in the gateway's loop, like :meth:`shut`."""
        secret = secrets.token_urlsafe(32)
        keys = {
            role: f"sk-coterie-{number}-{secret}"
            for number, role in enumerate(("", *session.roles))
        }
        self._keys |= {key: Key(session, role) for role, key in keys.items()}
        return keys

    def shut(self, session: Session, keys: Iterable[str]) -> None:
        """Revoke the keys of an episode."""
        for gate in self._gates.values():
            gate.leave(session)
        for key in keys:
            self._keys.pop(key, None)
            self._dead.append(key)

    def close(self) -> None:
        """End all programs, and the server."""

        async def end() -> None:
            for session in {key.session for key in self._keys.values()}:
                session.finish(ProgramResult(failure="the run ended"))
            self._server.close()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                if task.get_name() != COMMAND:  # a command's task is killing its processes
                    task.cancel()
            if left:
                await asyncio.wait(left, timeout=_CLOSING_S)

        if self.loop.is_running():
            # If something blocks the loop, give up: commands and threads end with this process.
            with suppress(TimeoutError):
                self.submit(end()).result(timeout=2 * _CLOSING_S)

    async def _handle(self, http_request: HttpRequest) -> Reply:
        try:
            return await respond(http_request, self._key(http_request.headers))
        except Refused as refused:
            return refusal(refused.status, refused.sentence)

    def _key(self, headers: Mapping[str, str]) -> Key:
        text = _key_text(headers)
        if (key := self._keys.get(text)) is not None:
            return key
        if text in self._dead:
            raise Refused(409, "this key's episode has ended")
        raise Refused(401, "this key opens nothing: take the one that the program was given")


def _key_text(headers: Mapping[str, str]) -> str:
    authorization = headers.get("authorization", "")
    bearer = authorization[7:].strip() if authorization[:7].lower() == "bearer " else ""
    return bearer or headers.get("x-api-key", "")


def _bypass_proxies() -> None:
    """Let programs reach this machine directly, whatever proxy the environment names."""
    for name in ("NO_PROXY", "no_proxy"):
        hosts = os.environ.get(name, "")
        if hosts != "*" and _LOOPBACK not in hosts.split(","):
            os.environ[name] = f"{hosts},{_LOOPBACK}".lstrip(",")


@cache
def gateway() -> Gateway:
    """The gateway of this process; the first call starts it."""
    return Gateway()
