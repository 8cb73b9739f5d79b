"""The end of a command: an error or a signal becomes one sentence and an exit code."""

import atexit
import ctypes
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

from coterie.agents.models.instructions import use_common

# What a user can mend: a disk that is full, a place that cannot be written or read.
_OF_PLACES = (errno.EACCES, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR)
_OF_DISKS = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS)
_SPINS = "4000"
"""Two threads then sample 1.5 times as fast on a quiet machine, and .7 times as fast beside a busy
process, for which ``use_free_threads`` leaves a processor (docs/LOG.md)."""

_GARBAGE = (50_000, 20, 50)
"""Thresholds of :func:`gc.set_threshold`. With Python's own it looks through the 400,000 objects of
torch and transformers again and again, for cycles that are hardly ever there: 30 steps of the
default run then take 13.2 seconds in place of 12.0."""

_KEPT_MEMORY = {-4: 0, -1: -1, -8: 1}
"""glibc's M_MMAP_MAX, M_TRIM_THRESHOLD and M_ARENA_MAX: memory that was freed is kept for the next
tensor. Otherwise a large one comes from the system each time, page by page: with two models of 135
and 270 million weights that was half of a warm-up step (82 of 160 seconds; 29 of 113 with it). Two
steps of their training take 175 seconds in place of 268, and 15.7 GB in place of 13.8."""


def run_command(command: Callable[[], int], *, program: str, interrupted: str) -> int:
    """The exit code of ``command``, which takes over what it prints.

    2 the user's mistake, 130 interrupted, 141 nobody reads its output any more.

    Args:
        command: does the work; gives 0, or a code of its own.
        program: begins every sentence.
        interrupted: what to say after Ctrl-C.
    """
    open_streams()
    wait_briefly()
    use_common()
    gc.set_threshold(*_GARBAGE)
    _keep_memory()
    try:
        for stream in (sys.stdout, sys.stderr):
            # A terminal that lacks a letter shows another one.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        with _terminable():
            code = command()
        # All is done: what strikes while the interpreter closes down changes nothing.
        for number in (signal.SIGINT, signal.SIGTERM):
            atexit.register(signal.signal, number, signal.SIG_IGN)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        logging.getLogger("asyncio").addFilter(_is_no_interrupt)
        print(f"\n{program}: {interrupted}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _unread()
    except SystemExit as left:
        # rich leaves with 1 where nobody reads its output any more.
        if isinstance(left.__context__, BrokenPipeError):
            return _unread()
        raise
    except Exception as error:
        if (sentence := _sentence(error)) is None:
            raise
        print(f"{program}: {sentence}", file=sys.stderr)
        return 2


def open_streams() -> None:
    """Open the standard streams that whoever started the program has closed, onto nothing.

    Otherwise the next file takes the number of such a stream, and gets what is written to it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number may be that of an earlier stream.
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)
            if opened != number:
                os.close(opened)
        mode = "w" if number else "r"
        setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (until the end)


def _unread() -> int:
    """Have what is still written go nowhere: nobody reads the output any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def wait_briefly() -> None:
    """Have torch's threads, here and in processes to come, sleep while they wait for each other,
    unless the user wants otherwise: beside busy processes they would spin for a core that another
    one has. GNU's OpenMP spins for some microseconds first, which spares most of the sleeps between
    two operations. To be called before torch is imported."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _SPINS)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Not what asyncio says of a task that Ctrl-C has struck: nobody waits for its end any more."""
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))


def _sentence(error: Exception) -> str | None:
    """The message for a mistake of the user's or an error of a disk; None for a bug."""
    # Whatever takes time to import waits until a signal is taken care of.
    from coterie.datatypes import UserError

    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, FileNotFoundError) and not error.filename and _is_nowhere():
        return "the folder in which this was started is gone; change to one that is there"
    if isinstance(error, OSError) and error.errno in (*_OF_PLACES, *_OF_DISKS):
        name = error.filename
        where = f"{os.fsdecode(name) if isinstance(name, bytes) else name}: " if name else ""
        return f"{where}{error.strerror}"
    if isinstance(error, UnicodeEncodeError) and os.path.lexists(error.object):
        from coterie.cli.output_paths import NOT_UTF8

        return f"{error.object}: {NOT_UTF8}"
    return None


def _is_nowhere() -> bool:
    """Whether the working folder was deleted."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


@contextmanager
def _terminable() -> Iterator[None]:
    """While open, SIGTERM acts like Ctrl-C: one sentence, and no process is left behind."""

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
    """The user asked the run to stop; its state is whole."""


class Interruptible:
    """While open, SIGINT and SIGTERM strike; from :meth:`begin` on, the first one only sets
    :attr:`asked`, and the second one strikes.

    ::

        with Interruptible() as interrupt, slow_to_open_and_close():
            interrupt.begin()
            for step in steps:
                work()
                interrupt.check()  # raises Stop
            interrupt.over = True
    """

    def __init__(self) -> None:
        self.asked = False
        self.over = False
        """Nothing is left to do but to close what was opened: nobody need hear that it stops."""
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
        """Note that the run has begun: an interruption now loses work."""
        self._begun = True

    def check(self) -> None:
        """Raise :class:`Stop` if a signal has come."""
        if self.asked:
            raise Stop

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.asked or not self._begun:
            raise KeyboardInterrupt
        self.asked = True
        if not self.over:
            print(
                "\nStopping after this step or evaluation; press Ctrl-C again to stop at once.",
                flush=True,
            )


def _keep_memory() -> None:
    """Set :data:`_KEPT_MEMORY`, where the C library has it."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for option, value in _KEPT_MEMORY.items():
            mallopt(option, value)
