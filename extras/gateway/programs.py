"""The programs that play: a function in a thread of this process, or a command of its own."""

import asyncio
import errno
import inspect
import json
import os
import shlex
import stat
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from shutil import rmtree
from typing import Any
from weakref import WeakSet

from coterie.datatypes import Problem, UserError
from coterie.envs.guarded import describe
from coterie.extras.gateway.results import plain
from coterie.extras.gateway.session import Ended

MOST_OUTPUT = 1 << 20
"""Bytes that a command may write, and bytes of its answer."""
COMMAND = "command"
"""Name of the tasks that end what a command started when they are cancelled."""
_LAUNCHER = Path(__file__).with_name("launcher.py")
_STOP_S = 10.0
"""Seconds that all that a command started has to end."""


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
                    with asyncio.Runner(loop_factory=_ProgramLoop) as runner:
                        result = runner.run(awaited(result))
                ended = Ended(plain(result))
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


class _ProgramLoop(asyncio.SelectorEventLoop):
    """The event loop of one program. With it end the connections that the program has opened:
    clients that it does not close may be closed later by Python, in another loop, and find nothing
    left to do."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: WeakSet[asyncio.BaseTransport] = WeakSet()

    async def create_connection(self, *arguments: Any, **more: Any) -> Any:
        transport, protocol = await super().create_connection(*arguments, **more)
        self._opened.add(transport)
        return transport, protocol

    def close(self) -> None:
        if not self.is_closed() and (left := [t for t in self._opened if not t.is_closing()]):
            for transport in left:
                getattr(transport, "abort", transport.close)()
            self.run_until_complete(asyncio.sleep(0))  # they are told
        super().close()


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
        """Play in a process of its own, which :mod:`coterie.extras.gateway.launcher` starts and
        ends, with all that it started."""
        task = asyncio.create_task(self._play(endpoints, problem), name=COMMAND)

        def ended(task: "asyncio.Task[Ended]") -> None:
            if not task.cancelled():
                error = task.exception()
                done(Ended(failure=describe(error)) if error is not None else task.result())

        task.add_done_callback(ended)
        return task.cancel

    async def _play(self, endpoints: Endpoints, problem: Problem) -> Ended:
        shown = {"id": problem.id, "question": problem.question, "choices": problem.choices}
        folder = tempfile.mkdtemp(prefix="coterie-")
        answer = Path(folder) / "answer"
        try:
            output = await self._run(
                folder,
                {
                    **os.environ,
                    **endpoints.environment(),
                    "COTERIE_QUESTION": problem.question,
                    "COTERIE_PROBLEM": json.dumps(shown),
                    "COTERIE_ANSWER": str(answer),
                },
            )
            if output.floods:
                return Ended(failure=f"the program wrote more than {MOST_OUTPUT:,} bytes")
            if output.code:
                last = output.errors.decode(errors="replace").strip().rpartition("\n")[2][:300]
                return Ended(failure=f"the program ended with {output.code}: {last}")
            written = await asyncio.to_thread(_read_answer, answer)
        except _NoAnswer as why:
            return Ended(failure=str(why))
        finally:
            # It may hold any number of files.
            await asyncio.to_thread(rmtree, folder, ignore_errors=True)
        return Ended(plain(_result(written or bytes(output.out))))

    async def _run(self, folder: str, environment: Mapping[str, str]) -> "_Output":
        """What the command writes, when it and all that it started have ended."""
        loop, output = asyncio.get_running_loop(), _Output()
        transport, _ = await loop.subprocess_exec(
            lambda: output,
            *(sys.executable, "-I", "-S", str(_LAUNCHER), folder),
            *self.words,
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
        try:
            await output.enough.wait()
        finally:
            output.close_input()
            try:
                async with asyncio.timeout(_STOP_S):
                    await output.exited.wait()
            except TimeoutError:
                transport.kill()
            finally:
                output.code = transport.get_returncode() or 0
                transport.close()
        return output


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


class _NoAnswer(Exception):
    """Why the file for the answer cannot be read."""


class _Output(asyncio.SubprocessProtocol):
    """What a command writes, until it has ended and closed its outputs."""

    def __init__(self) -> None:
        self.out, self.errors = bytearray(), bytearray()
        self.enough, self.exited = asyncio.Event(), asyncio.Event()
        """Set when all is there, or too much; and when the process has ended."""
        self.floods, self.code = False, 0
        """Whether it is too much; the status of the process."""
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # pyright: ignore[reportAttributeAccessIssue]

    def close_input(self) -> None:
        """Tell the launcher that all must end."""
        pipe = None if self._transport is None else self._transport.get_pipe_transport(0)
        if pipe is not None:
            pipe.close()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        whole = self.out if fd == 1 else self.errors
        if self.floods:
            return
        whole += data
        if len(whole) > MOST_OUTPUT:
            self.floods = True
            self.enough.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.close_input()

    def connection_lost(self, exc: Exception | None) -> None:
        self.enough.set()


def _read_answer(path: Path) -> bytes:
    """The file, b"" where there is none. Nothing that is no plain file of the folder is opened for
    long, and no more is read than may be written.

    Raises:
        _NoAnswer: it is none.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        why = "a link" if error.errno == errno.ELOOP else error.strerror
        raise _NoAnswer(f"the program's answer is no file that can be read: {why}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _NoAnswer("the program's answer is no regular file")
        read = bytearray()
        while len(read) <= MOST_OUTPUT and (more := os.read(descriptor, MOST_OUTPUT)):
            read += more
    finally:
        os.close(descriptor)
    if len(read) > MOST_OUTPUT:
        raise _NoAnswer(f"the program's answer has more than {MOST_OUTPUT:,} bytes")
    return bytes(read)


def _result(output: bytes) -> Any:
    """Text to be graded, or what ``{"rewards": ...}`` pays."""
    text = output.decode(errors="replace").strip()
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict) and set(value) == {"rewards"}:
            return value["rewards"]
    return text
