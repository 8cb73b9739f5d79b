"""Programs that are a command line: each plays in a process of its own."""

import asyncio
import errno
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree, which
from typing import Any

from coterie.datatypes import Problem, UserError, cause_of
from coterie.extras.gateway.programs import Endpoints
from coterie.extras.gateway.rewards import plain
from coterie.extras.gateway.session import ProgramResult

MOST_OUTPUT = 1 << 20
"""Maximum number of bytes that a command may write, and of its answer file."""
COMMAND = "command"
"""Name of the tasks that run commands; cancelling one kills its processes."""
_LAUNCHER = Path(__file__).with_name("launcher.py")
_STOP_S = 10.0
"""Seconds for all processes of a command to end."""


@dataclass(frozen=True)
class CommandProgram:
    """A command line, run without a shell."""

    words: tuple[str, ...]

    def __call__(
        self, endpoints: Endpoints, problem: Problem, done: Callable[[ProgramResult], None]
    ) -> Callable[[], object]:
        """Play in a process of its own. :mod:`coterie.extras.gateway.launcher` starts it, and kills
        it with all processes that it started."""
        task = asyncio.create_task(self._play(endpoints, problem), name=COMMAND)

        def report(task: "asyncio.Task[ProgramResult]") -> None:
            if not task.cancelled():
                error = task.exception()
                done(ProgramResult(failure=cause_of(error)) if error is not None else task.result())

        task.add_done_callback(report)
        return task.cancel

    async def _play(self, endpoints: Endpoints, problem: Problem) -> ProgramResult:
        public = {"id": problem.id, "question": problem.question, "choices": problem.choices}
        shown = json.dumps(public, ensure_ascii=False)
        folder = tempfile.mkdtemp(prefix="coterie-")
        answer = Path(folder) / "answer"
        try:
            output = await self._run(
                folder,
                {
                    **os.environ,
                    **endpoints.environment(),
                    "COTERIE_QUESTION": problem.question,
                    "COTERIE_PROBLEM": shown,
                    "COTERIE_ANSWER": str(answer),
                },
            )
            if output.floods:
                return ProgramResult(failure=f"the program wrote more than {MOST_OUTPUT:,} bytes")
            if output.code:
                last = output.errors.decode(errors="replace").strip().rpartition("\n")[2][:300]
                return ProgramResult(failure=f"the program ended with {output.code}: {last}")
            written = await asyncio.to_thread(_read_answer, answer)
        except _NoAnswer as why:
            return ProgramResult(failure=str(why))
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise
            return ProgramResult(
                failure=f"a command cannot be given a problem of {len(shown.encode()):,} bytes "
                "(Linux takes 131,072 in one variable; a function of harness: has no such limit)"
            )
        finally:
            # In a thread, as a command may leave any number of files there.
            await asyncio.to_thread(rmtree, folder, ignore_errors=True)
        return ProgramResult(plain(_value(bytes(output.out) if written is None else written)))

    async def _run(self, folder: str, environment: Mapping[str, str]) -> "_Output":
        """Run the command until it and all processes that it started have ended."""
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
    """Parse a command line.

    Raises:
        UserError: its quotes do not match, or there is no such program.
    """
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
    """The answer file cannot be read; the message says why."""


class _Output(asyncio.SubprocessProtocol):
    """Collects what a command writes, until it has ended and closed its outputs."""

    def __init__(self) -> None:
        self.out, self.errors = bytearray(), bytearray()
        self.enough, self.exited = asyncio.Event(), asyncio.Event()
        """``enough``: the output is complete, or too long; ``exited``: the process has ended."""
        self.floods, self.code = False, 0
        """``floods``: the output is too long; ``code``: exit status of the process."""
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # pyright: ignore[reportAttributeAccessIssue]

    def close_input(self) -> None:
        """Have the launcher kill all processes."""
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


def _read_answer(path: Path) -> bytes | None:
    """Read the answer file; None if there is none."""
    if not os.path.lexists(path):
        return None
    # Reading a pipe would wait for a writer.
    if path.is_symlink() or not path.is_file():
        raise _NoAnswer("the program's answer is no regular file")
    with path.open("rb") as file:
        read = file.read(MOST_OUTPUT + 1)
    if len(read) > MOST_OUTPUT:
        raise _NoAnswer(f"the program's answer has more than {MOST_OUTPUT:,} bytes")
    return read


def _value(output: bytes) -> Any:
    """Text to grade, or the rewards in ``{"rewards": ...}``."""
    text = output.decode(errors="replace").strip()
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict) and set(value) == {"rewards"}:
            return value["rewards"]
    return text
