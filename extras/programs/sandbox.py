"""Runs a program against its tests, in two processes that are killed at the deadline.

The program runs in one process, its tests in the other; they exchange arguments and results as
plain values. The program can therefore neither read the expected results nor fake a pass: only
the tests' process writes the verdict, after the last test.
"""

import contextlib
import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, Interval

from coterie.datatypes import UserError, Validated

Outcome = Literal["passed", "failed", "quit", "timeout", "error"]
"""``failed``: a test failed, or the program does not load; ``quit``: the program exited, or wrote
an invalid result; ``error``: the tests cannot be run."""

_NUMPY = re.compile(r"^[ \t]*(?:import|from)[ \t]+numpy\b", re.MULTILINE)
START_S = 60.0
"""Seconds in which both processes must be ready."""
_HERE = Path(__file__).parent
_TESTER_MEMORY = 4 << 30
_PYTHON = [sys.executable, "-I", "-W", "ignore"]
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class ProgramLimits(Validated):
    """Limits on the resources of a program."""

    deadline_s: Annotated[float, Interval(gt=0, le=86_400)] = 10.0
    """Seconds for loading the program and all of its tests."""
    memory_mb: Annotated[int, Ge(64)] = 1024
    """Address space of the program's process."""


@dataclass(frozen=True)
class ProgramTests:
    """The tests of a program."""

    entry: str
    """Name of the function under test."""
    test: str
    """Source that calls the function by its name, or defines ``check(candidate)``."""
    prompt: str = ""
    """Source that precedes the program: imports, helpers."""


@dataclass(frozen=True)
class Program:
    """A response cut into parts: the player makes one program of them."""

    blocks: tuple[str, ...]
    """Code and prose, in order."""
    home: int = 0
    """Index of the block that holds the solution."""
    kind: Literal["whole", "cut", "continuation"] = "whole"
    """Whether the block is closed, may break off, or goes on after the prompt."""


def run(
    program: str | Program, tests: ProgramTests, limits: ProgramLimits = ProgramLimits()
) -> Outcome:
    """Run ``program`` against all of ``tests`` and return the outcome.

    Args:
        program: source that a model wrote, or a response cut into parts.
        tests: the tests and the name of the function.
        limits: seconds and memory.

    Raises:
        UserError: this machine cannot guard processes.
    """
    if isinstance(program, str):
        program = Program((program,))
    written = job_of(program, tests.entry, tests.prompt)
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        job = Path(folder) / "job.json"
        parts = {"program": written, "test": tests.test}
        job.write_text(json.dumps(parts), encoding="ascii")
        empty = Path(folder) / "empty"
        empty.mkdir()
        with contextlib.ExitStack() as stack:
            numpy = any(_NUMPY.search(block) for block in program.blocks)
            tester = _start(stack, job, empty, limits, numpy=numpy)
            return _verdict(tester, limits.deadline_s)


def job_of(program: Program, entry: str, prompt: str = "") -> dict[str, Any]:
    """The job of the player: the parts of a program, and the name of its function."""
    parts = {"blocks": program.blocks, "home": program.home, "kind": program.kind}
    return {**parts, "entry": entry, "prompt": prompt}


def check_guard() -> None:
    """Run a trivial program; raise :class:`UserError` if programs cannot be guarded."""
    tests = ProgramTests("f", "assert f(1) == 2")
    outcome = run("def f(x):\n    return x + 1", tests, ProgramLimits(deadline_s=START_S))
    if outcome != "passed":
        raise UserError(CANNOT)


CANNOT = (
    "programs cannot be guarded on this machine (Linux on x86-64 or ARM with seccomp is needed), "
    "so none that a model wrote is run; leave out --scoring.programs, and problems of kind code"
)


def start_player(
    stack: contextlib.ExitStack,
    folder: Path,
    limits: ProgramLimits,
    reads: int,
    writes: int,
    *,
    numpy: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program's process, which talks over these descriptors; the stack kills it.

    Args:
        stack: kills the process when it is closed.
        folder: its working folder.
        limits: seconds and memory.
        reads: descriptor that it reads from.
        writes: descriptor that it writes to.
        numpy: load numpy for it.
    """
    command = [*_PYTHON, "-S", str(_HERE / "player.py")]
    command += [str(limits.memory_mb << 20), _cpu_s(limits)]
    if numpy and (found := find_spec("numpy")) is not None and found.origin is not None:
        command.append(str(Path(found.origin).parents[1]))
    player = subprocess.Popen(
        command,
        stdin=reads,
        stdout=writes,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=_ENVIRONMENT,
        start_new_session=True,
    )
    stack.callback(_end, player)
    return player


def _cpu_s(limits: ProgramLimits) -> str:
    # One second more than the deadline: this limit applies if the parent is not there to kill.
    return str(int(limits.deadline_s) + 1)


def _start(
    stack: contextlib.ExitStack, job: Path, folder: Path, limits: ProgramLimits, *, numpy: bool
) -> subprocess.Popen[bytes]:
    """Start both processes, which the stack kills; return the process with the verdict."""
    asks, answers = os.pipe(), os.pipe()
    cpu_s = _cpu_s(limits)
    try:
        start_player(stack, folder, limits, asks[0], answers[1], numpy=numpy)
        with job.open("rb") as question:
            ends = [str(answers[0]), str(asks[1])]
            tester = subprocess.Popen(
                [*_PYTHON, str(_HERE / "tester.py"), str(_TESTER_MEMORY), cpu_s, *ends],
                stdin=question,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=_ENVIRONMENT,
                pass_fds=(answers[0], asks[1]),
                start_new_session=True,
            )
        stack.callback(_end, tester)
    finally:
        for end in (*asks, *answers):
            os.close(end)
    return tester


def _verdict(tester: subprocess.Popen[bytes], deadline_s: float) -> Outcome:
    assert tester.stdout is not None
    output, due = b"", time.monotonic() + START_S
    with selectors.DefaultSelector() as selector:
        selector.register(tester.stdout, selectors.EVENT_READ)
        while output.count(b"\n") < 2:
            if not selector.select(max(0.0, due - time.monotonic())):
                if output:
                    return "timeout"
                raise UserError(f"a guarded process took over {START_S:.0f} s to start")
            piece = os.read(tester.stdout.fileno(), 64)
            if not piece:
                # No message: the guard could not be set up. After "ready": the tests died.
                if output:
                    return "error"
                raise UserError(CANNOT)
            if not output:
                due = time.monotonic() + deadline_s
            output += piece
    word = output.decode("ascii", "replace").split("\n")[-2]
    return next((known for known in get_args(Outcome) if known == word), "error")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and reap it; a guarded process has no children."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
