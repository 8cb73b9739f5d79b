"""A Python console for models: a few lines go in; their output and last value come out.

The lines run in a separate guarded process, like a graded program: no files, no network, no
other processes. No state is kept between calls.
"""

import contextlib
import os
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from coterie.datatypes import UserError
from coterie.extras.programs.sandbox import (
    CANNOT,
    START_S,
    Program,
    ProgramLimits,
    job_of,
    start_player,
)
from coterie.extras.programs.wire import BrokenLinkError, Link

LONGEST = 1 << 16
"""Maximum number of characters of a source; a longer one is not run."""
_LIMITS = ProgramLimits()
_PROGRAM = """
import ast, contextlib, io, traceback

def output():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            tree = ast.parse(SOURCE.strip())
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            space = {"__name__": "__main__"}
            exec(compile(tree, "<console>", "exec"), space)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<console>", "eval"), space)
                if value is not None:
                    print(value)
        except Exception as error:
            print(*traceback.format_exception_only(error), sep="", end="")
    return printed.getvalue()[:LONGEST]
"""


def output_of(source: str, limits: ProgramLimits = _LIMITS, longest: int = 1000) -> str:
    """Return what a console shows for ``source``, errors included.

    The same source gives the same output for the lifetime of this process, even if it reads clocks
    or random numbers, so that an episode can be replayed.

    Args:
        source: text that a model wrote.
        limits: seconds and memory.
        longest: maximum number of characters of the output.

    Raises:
        UserError: this machine cannot guard processes.
    """
    # Bounds the memory of the cache below.
    if len(source) > LONGEST:
        return f"killed: longer than {LONGEST:,} characters\n"[:longest]
    try:
        return _begun(source, limits, longest).result()
    except UserError:
        _begun.cache_clear()
        raise


def begin(source: str, limits: ProgramLimits = _LIMITS, longest: int = 1000) -> None:
    """Run ``source`` while the caller goes on; :func:`output_of` waits for what it shows."""
    if len(source) <= LONGEST:
        _begun(source, limits, longest)


@lru_cache(maxsize=1 << 14)
def _begun(source: str, limits: ProgramLimits, longest: int) -> "Future[str]":
    return _threads().submit(_output_of, source, limits, longest)


@lru_cache
def _threads() -> ThreadPoolExecutor:
    """Threads that wait for the processes, one for each processor."""
    return ThreadPoolExecutor(os.cpu_count() or 1, "console")


def _output_of(source: str, limits: ProgramLimits, longest: int) -> str:
    asks, answers = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="console-") as empty, contextlib.ExitStack() as stack:
        for end in (*asks, *answers):
            stack.callback(os.close, end)
        player = start_player(stack, Path(empty), limits, asks[0], answers[1])
        # Close our copies of the child's pipe ends, so that its death ends our read.
        os.dup2(asks[1], asks[0])
        os.dup2(asks[1], answers[1])
        link = Link(answers[0], asks[1])
        start_timer = threading.Timer(START_S, player.kill)
        deadline_timer = threading.Timer(limits.deadline_s, player.kill)
        for timer in (start_timer, deadline_timer):
            stack.callback(timer.cancel)
        try:
            start_timer.start()
            if link.receive() != "ready":
                raise UserError(CANNOT)
        except BrokenLinkError:
            raise UserError(CANNOT) from None
        start_timer.cancel()
        deadline_timer.start()
        source = source.encode("utf-8", "replace").decode()
        head = f"SOURCE = {source!r}\nLONGEST = {longest}\n"
        program = job_of(Program((head + _PROGRAM,)), "output")
        try:
            link.send({"program": program, "returns_arguments": False})
            if link.receive() == "loaded":
                link.send({"call": [0, ["tuple", []], ["dict", []]]})
                return _shown(link.receive(), longest)
        except BrokenLinkError:
            pass
        # A timer that has fired is finished, and so is one that was cancelled; this one is not
        # cancelled before the stack closes.
        late = deadline_timer.finished.is_set()
        return "killed: out of time or memory\n" if late else "killed\n"


def _shown(reply: Any, longest: int) -> str:
    """The output in a reply, which the program may have forged: any JSON data."""
    match reply:
        case {"value": str(text)}:
            pass
        case {"error": [[str(name), *_], *_]}:
            text = f"{name}\n"
        case _:
            text = "killed\n"
    # Tokenizers accept no half of a surrogate pair.
    return text[:longest].encode("utf-8", "replace").decode()
