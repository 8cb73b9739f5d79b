"""Runs a command: its errors and signals become one sentence and an exit code."""

import atexit
import errno
import gc
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from coterie.agents.models.heap import keep_freed_memory
from coterie.agents.models.instructions import use_common

# Errors that a user can mend: a path that cannot be read or written, a full disk.
_PATH_ERRORS = (errno.EACCES, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR)
_DISK_ERRORS = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS)
_SPINS = "4000"
"""GOMP_SPINCOUNT. With it two threads sample 1.5 times as fast on a quiet machine, and .7 times as
fast beside a busy process, for which ``use_free_threads`` leaves a processor (docs/LOG.md)."""

_GARBAGE = (50_000, 20, 50)
"""Arguments of :func:`gc.set_threshold`. With Python's defaults it searches the 400,000 objects of
torch and transformers again and again for cycles that hardly exist: 30 steps of the default run
then take 13.2 seconds instead of 12.0."""


def run_command(command: Callable[[], int], *, program: str, interrupted: str) -> int:
    """Run ``command`` and return its exit code: 2 after a user's mistake, 130 if it was
    interrupted, 141 if its output is no longer read.

    Args:
        command: does the work; returns 0 or another exit code.
        program: begins every message.
        interrupted: the message after Ctrl-C.
    """
    open_streams()
    wait_briefly()
    use_common()
    gc.set_threshold(*_GARBAGE)
    keep_freed_memory()
    try:
        for stream in (sys.stdout, sys.stderr):
            # Without this, a letter that the terminal lacks would raise.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        with _terminable():
            code = command()
        # The work is done: a signal while the interpreter shuts down should change nothing.
        for number in (signal.SIGINT, signal.SIGTERM):
            atexit.register(signal.signal, number, signal.SIG_IGN)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        logging.getLogger("asyncio").addFilter(_is_not_about_an_interrupt)
        print(f"\n{program}: {interrupted}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _discard_output()
    except SystemExit as left:
        # rich turns a broken pipe into exit code 1.
        if isinstance(left.__context__, BrokenPipeError):
            return _discard_output()
        raise
    except Exception as error:
        if (sentence := _sentence(error)) is None:
            raise
        print(f"{program}: {sentence}", file=sys.stderr)
        return 2


def open_streams() -> None:
    """Open standard streams that are closed onto the null device.

    Otherwise the next file that is opened gets the number of such a stream, and its output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number may be that of another closed stream.
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)
            if opened != number:
                os.close(opened)
        mode = "w" if number else "r"
        setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (until the end)


def _discard_output() -> int:
    """Send further output to the null device, and return the exit code of a broken pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def wait_briefly() -> None:
    """Let torch's threads, in this process and its children, sleep while they wait for each other,
    unless the user has set ``OMP_WAIT_POLICY``. Call it before torch is imported.

    Threads that spin beside busy processes wait for a core that another process has. GNU's OpenMP
    spins for some microseconds first, which avoids most sleeps between two operations.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _SPINS)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _is_not_about_an_interrupt(record: logging.LogRecord) -> bool:
    """A log filter against asyncio's report of a task that Ctrl-C has ended."""
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))


def _sentence(error: Exception) -> str | None:
    """The message for a user's mistake or a disk's error; None for a bug."""
    # Imported late, so that signals are handled before slow imports.
    from coterie.datatypes import UserError

    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, FileNotFoundError) and not error.filename and not _has_folder():
        return "the working directory no longer exists; change to another one"
    if isinstance(error, OSError) and error.errno in (*_PATH_ERRORS, *_DISK_ERRORS):
        name = error.filename
        where = f"{os.fsdecode(name) if isinstance(name, bytes) else name}: " if name else ""
        return f"{where}{error.strerror}"
    if isinstance(error, UnicodeEncodeError) and os.path.lexists(error.object):
        from coterie.cli.output_paths import NOT_UTF8

        return f"{error.object}: {NOT_UTF8}"
    return None


def _has_folder() -> bool:
    """Whether the working folder still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _terminable() -> Iterator[None]:
    """Inside, SIGTERM acts like Ctrl-C, so that no child process is left behind."""

    def interrupt(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Stop(Exception):
    """The user asked the run to stop; it is between two steps, so its state can be saved."""


class Interruptible:
    """Handles SIGINT and SIGTERM while open: from :meth:`begin` on the first one only requests a
    stop, which :meth:`check` raises. Before that, and at the second one, they interrupt at once.

    ::

        with Interruptible() as interrupt, slow_to_open_and_close():
            interrupt.begin()
            for step in steps:
                work()
                interrupt.check()  # raises Stop
            interrupt.over = True
    """

    def __init__(self) -> None:
        self._stop_requested = False
        self.over = False
        """Set it when only cleaning up is left: a signal then prints no message."""
        self._begun = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> "Interruptible":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def begin(self) -> None:
        """Note that the run has begun, so that an interruption would lose work."""
        self._begun = True

    def check(self) -> None:
        """Raise :class:`Stop` if a signal has come."""
        if self._stop_requested:
            raise Stop

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._stop_requested or not self._begun:
            raise KeyboardInterrupt
        self._stop_requested = True
        if not self.over:
            print(
                "\nStopping after this step or evaluation; press Ctrl-C again to stop at once.",
                flush=True,
            )
