"""The endpoint that programs talk to: one server for all episodes of this process."""

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

try:  # half of asyncio's time for a call
    from uvloop import new_event_loop
except ImportError:  # not for this system
    from asyncio import new_event_loop

from coterie.extras.gateway.gate import Gate
from coterie.extras.gateway.http import Asked, Reply, Server
from coterie.extras.gateway.messages import Refused
from coterie.extras.gateway.programs import COMMAND
from coterie.extras.gateway.routes import Key, refusal, respond
from coterie.extras.gateway.session import Ended, Session

T = TypeVar("T")

_DEAD_KEYS = 4096
"""Keys of ended episodes that are remembered, so that a late call is told why."""
_HOME = "127.0.0.1"
_CLOSING_S = 5.0
"""Seconds that programs and connections have to end, when the gateway is closed."""


class Gateway:
    """The server of this process. It and all that programs touch live in an event loop in a thread
    of its own."""

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self.proven: set[str] = set()
        """Programs that have asked somebody something."""
        self._keys: dict[str, Key] = {}
        self._dead: deque[str] = deque(maxlen=_DEAD_KEYS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: dict[asyncio.AbstractEventLoop, list[Coroutine[Any, Any, None]]] = {}
        self._gates: dict[asyncio.AbstractEventLoop, Gate] = {}
        threading.Thread(target=self.loop.run_forever, daemon=True, name="gateway").start()
        self._server = Server(self._handle, refusal, self._owner)
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
        secret = secrets.token_urlsafe(32)
        keys = {
            role: f"sk-coterie-{place}-{secret}" for place, role in enumerate(("", *session.roles))
        }
        self._keys |= {key: Key(session, role) for role, key in keys.items()}
        return keys

    def shut(self, session: Session, keys: Iterable[str]) -> None:
        """The episode's keys open nothing any more."""
        for gate in self._gates.values():
            gate.leave(session)
        for key in keys:
            self._keys.pop(key, None)
            self._dead.append(key)
        self._server.forget(session)

    def close(self) -> None:
        """End all programs, and the server; nothing of them is left to be done."""

        async def end() -> None:
            for session in {key.session for key in self._keys.values()}:
                session.finish(Ended(failure="the run ended"))
            self._server.close()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                if task.get_name() != COMMAND:  # else it is ending what it started
                    task.cancel()
            if left:
                await asyncio.wait(left, timeout=_CLOSING_S)

        if self.loop.is_running():
            # Where something holds the loop nothing can be ended here: commands end with this
            # process, and so do threads.
            with suppress(TimeoutError):
                self.submit(end()).result(timeout=2 * _CLOSING_S)

    async def _handle(self, asked: Asked) -> Reply:
        try:
            return await respond(asked, self._key(asked))
        except Refused as refused:
            return refusal(refused.status, refused.sentence)

    def _owner(self, headers: Mapping[str, str]) -> Session | None:
        """The episode whose program sends a request with these headers."""
        key = self._keys.get(_word(headers))
        return None if key is None else key.session

    def _key(self, asked: Asked) -> Key:
        word = _word(asked.headers)
        if (key := self._keys.get(word)) is not None:
            return key
        if word in self._dead:
            raise Refused(409, "this key's episode has ended")
        raise Refused(401, "this key opens nothing: take the one that the program was given")


def _word(headers: Mapping[str, str]) -> str:
    """The key that a request shows."""
    given = headers.get("authorization", "")
    word = given[7:].strip() if given[:7].lower() == "bearer " else ""
    return word or headers.get("x-api-key", "")


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
