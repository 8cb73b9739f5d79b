"""The programs that play: a function in a thread of this process, or a command of its own."""

import asyncio
import inspect
import json
import os
import shlex
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from coterie.datatypes import Problem, UserError
from coterie.envs.guarded import describe
from coterie.extras.gateway.session import Ended

MOST_OUTPUT = 1 << 20
"""Bytes that a command may write."""


@dataclass(frozen=True)
class Endpoint:
    """Where one role answers."""

    base_url: str
    """Of clients for chat completions and responses; ``.../v1``."""
    anthropic_url: str
    """Of Anthropic's clients, which add ``/v1`` themselves."""
    api_key: str
    model: str
    """The role's name."""


class Endpoints(Mapping[str, Endpoint]):
    """Role -> its endpoint. As a whole it is one, too, whose requests name the role as the
    model."""

    def __init__(self, url: str, keys: Mapping[str, str]) -> None:
        self.base_url, self.anthropic_url, self.api_key = f"{url}/v1", url, keys[""]
        self._of = {
            role: Endpoint(self.base_url, url, key, role) for role, key in keys.items() if role
        }

    def __getitem__(self, role: str) -> Endpoint:
        return self._of[role]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def environment(self) -> dict[str, str]:
        """What the usual clients read from the environment, and each role's key."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": self.api_key,
            "ANTHROPIC_BASE_URL": self.anthropic_url,
            "ANTHROPIC_API_KEY": self.api_key,
            "COTERIE_ROLES": " ".join(self),
            **{f"COTERIE_KEY_{role.upper()}": self[role].api_key for role in self},
        }


Program = Callable[[Endpoints, Problem, Callable[[Ended], None]], Callable[[], object]]
"""Starts to play, in the gateway's loop; calls back there when it has ended, and returns what stops
it."""


@dataclass(frozen=True)
class FunctionProgram:
    """``run(endpoints, problem)``, a coroutine function or not."""

    function: Callable[..., Any]

    def __call__(
        self, endpoints: Endpoints, problem: Problem, done: Callable[[Ended], None]
    ) -> Callable[[], object]:
        """Play in a thread. A coroutine is cancelled when it is stopped; another function goes on
        until its next call, which is refused."""
        gateway = asyncio.get_running_loop()
        running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

        async def awaited(result: Any) -> Any:
            task = asyncio.current_task()
            assert task is not None
            running.append((asyncio.get_running_loop(), task))
            return await result

        def play() -> None:
            try:
                result = self.function(endpoints, problem)
                if inspect.isawaitable(result):
                    result = asyncio.run(awaited(result))
                ended = Ended(result)
            except BaseException as error:
                ended = Ended(failure=f"the program raised {describe(error)}"[:400])
            with suppress(RuntimeError):  # the gateway is closed
                gateway.call_soon_threadsafe(done, ended)

        def stop() -> None:
            for loop, task in running:
                with suppress(RuntimeError):  # it has ended
                    loop.call_soon_threadsafe(task.cancel)

        _THREADS.run(play)
        return stop


class _Threads:
    """Threads that play a program after the other. A new one starts where all are busy: a program
    that hangs keeps its own."""

    def __init__(self) -> None:
        self._idle: deque[SimpleQueue[Callable[[], None]]] = deque()

    def run(self, play: Callable[[], None]) -> None:
        """Call ``play``, which raises nothing, with no context variable of another program."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), daemon=True, name="program").start()
        inbox.put(play)

    def _work(self, inbox: "SimpleQueue[Callable[[], None]]") -> None:
        while True:
            Context().run(inbox.get())
            self._idle.append(inbox)


_THREADS = _Threads()


@dataclass(frozen=True)
class CommandProgram:
    """A command line, which is not given to a shell."""

    words: tuple[str, ...]

    def __call__(
        self, endpoints: Endpoints, problem: Problem, done: Callable[[Ended], None]
    ) -> Callable[[], object]:
        """Play in a process and a process group of its own, which is killed when it is stopped."""
        task = asyncio.create_task(self._play(endpoints, problem))

        def ended(task: "asyncio.Task[Ended]") -> None:
            if not task.cancelled():
                error = task.exception()
                done(Ended(failure=describe(error)) if error is not None else task.result())

        task.add_done_callback(ended)
        return task.cancel

    async def _play(self, endpoints: Endpoints, problem: Problem) -> Ended:
        shown = {"id": problem.id, "question": problem.question, "choices": problem.choices}
        with tempfile.TemporaryDirectory(prefix="coterie-") as folder:
            answer = Path(folder) / "answer"
            loop, output = asyncio.get_running_loop(), _Output()
            transport, _ = await loop.subprocess_exec(
                lambda: output,
                *self.words,
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                env={
                    **os.environ,
                    **endpoints.environment(),
                    "COTERIE_QUESTION": problem.question,
                    "COTERIE_PROBLEM": json.dumps(shown),
                    "COTERIE_ANSWER": str(answer),
                },
            )
            pid = transport.get_pid()
            try:
                await output.closed
                written = answer.read_bytes()[:MOST_OUTPUT] if answer.is_file() else b""
            except _Floods:
                return Ended(failure=f"the program wrote more than {MOST_OUTPUT:,} bytes")
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                transport.close()
        if code := transport.get_returncode():
            last = output.errors.decode(errors="replace").strip().rpartition("\n")[2][:300]
            return Ended(failure=f"the program ended with {code}: {last}")
        return Ended(_result(written or bytes(output.out)))


def read_command(line: str) -> CommandProgram:
    """The program of a command line.

    Raises:
        UserError: it cannot be read, or names no program.
    """
    from shutil import which

    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UserError(f"env 'command:{line}': {error}; write it as for a shell.") from None
    if not words or which(words[0]) is None:
        raise UserError(
            f"env 'command:{line}': there is no program {words[0] if words else ''!r} here; write "
            '--env "command:python my_agents.py".'
        )
    return CommandProgram(tuple(words))


class _Floods(Exception):
    """More output than there may be."""


class _Output(asyncio.SubprocessProtocol):
    """What a command writes, until it has ended and closed its outputs."""

    def __init__(self) -> None:
        self.out, self.errors = bytearray(), bytearray()
        self.closed = asyncio.get_running_loop().create_future()
        """Set when all is there; :class:`_Floods` when it is too much."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        whole = self.out if fd == 1 else self.errors
        whole += data
        if len(whole) > MOST_OUTPUT and not self.closed.done():
            self.closed.set_exception(_Floods())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


def _result(output: bytes) -> Any:
    """Text to be graded, or what ``{"rewards": ...}`` pays."""
    text = output.decode(errors="replace").strip()
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict) and set(value) == {"rewards"}:
            return value["rewards"]
    return text
