"""The progress of a long stage of a run: count, elapsed time and remaining time.

A terminal shows a bar. Elsewhere a line is printed at the start, at each tenth, and after a minute
of silence; for a part of a step only after such a minute. A thread shows the progress, because the
event loop stands still while models compute.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from coterie.cli.progress import ANSWERED, ENDED, LEARNED, LOADED, Pulse, Sum

Count = Pulse | Sum

PERIOD_S = 0.25
"""Seconds between two readings of the count."""
SILENCE_S = 60.0
"""Seconds without a line, off a terminal, after which one is printed."""


def stage(
    console: Console,
    title: str,
    total: float,
    *,
    lines: bool = True,
    pulses: Sequence[Count] = (ANSWERED, ENDED),
    unit: str = "answers",
) -> AbstractContextManager[None]:
    """Show the progress of the work inside.

    Args:
        console: shows it.
        title: of the stage.
        total: about how many units it takes; 0: unknown.
        lines: whether to print lines off a terminal.
        pulses: count the units; the one that is furthest is shown.
        unit: of the total.
    """
    if console.is_terminal:
        return _bar(console, title, total, pulses)
    return _lines(console, title, total, pulses, unit) if lines else nullcontext()


def stage_of_step(
    console: Console,
    title: str,
    total: float,
    *,
    slow: bool,
    bar: Callable[[str], None] | None = None,
    pulses: Sequence[Count] = (ANSWERED, ENDED),
    unit: str = "answers",
) -> AbstractContextManager[None]:
    """Show a part of a step after a minute of silence, or at once by ``bar`` on a terminal.

    Other arguments as of :func:`stage`.

    Args:
        slow: whether the models are, so that parts of a step take long; else nothing is shown.
        bar: :meth:`coterie.training.run.log.Logbook.part`.
    """
    if not slow:
        return nullcontext()
    if console.is_terminal:
        return nullcontext() if bar is None else _in_bar(bar, title, total, pulses)
    return _lines(console, title, total, pulses, unit, part=True)


def learning(
    console: Console, step: str, rows: float, *, slow: bool, bar: Callable[[str], None] | None
) -> AbstractContextManager[None]:
    """Show the update of a step from ``rows`` rows, like :func:`stage_of_step`."""
    title = f"{step}: learning"
    return stage_of_step(console, title, rows, slow=slow, bar=bar, pulses=(LEARNED,), unit="rows")


def checking(*, slow: bool) -> AbstractContextManager[None]:
    """Show the checks before anything is loaded, if models are slow, like :func:`stage`."""
    title = "checking settings, models and problems"
    return stage(Console(), title, 0) if slow else nullcontext()


def loading(
    console: Console, models: Collection[str], *, lines: bool
) -> AbstractContextManager[None]:
    """Show the loading of models role by role, like :func:`stage`."""
    title = f"loading {', '.join(dict.fromkeys(models))}"
    return stage(console, title, len(models), lines=lines, pulses=(LOADED,), unit="roles")


@contextmanager
def _bar(console: Console, title: str, total: float, pulses: Sequence[Count]) -> Iterator[None]:
    columns = (BarColumn(bar_width=24), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    left = (TextColumn("+"), TimeRemainingColumn(compact=True), TextColumn("left"))
    with Progress(
        TextColumn("{task.description}", markup=False),
        *(columns if total else ()),
        TimeElapsedColumn(),
        *(left if total else ()),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=total or None)

        def show(done: float, seconds: float) -> None:
            # The total is an estimate: what exceeds it is the total from then on.
            bar.update(task, total=max(done, total) or None, completed=done)

        with _watching(show, pulses):
            yield


@contextmanager
def _in_bar(
    bar: Callable[[str], None], title: str, total: float, pulses: Sequence[Count]
) -> Iterator[None]:
    what = title.rpartition(": ")[2]

    def show(done: float, seconds: float) -> None:
        bar(f"{what} {done:.0f}/{max(done, total):.0f}" if total else what)

    try:
        with _watching(show, pulses):
            yield
    finally:
        bar("")


@contextmanager
def _lines(
    console: Console,
    title: str,
    total: float,
    pulses: Sequence[Count],
    unit: str,
    *,
    part: bool = False,
) -> Iterator[None]:
    def write(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    progress_lines = Lines(write, title, total, unit, tenths=not part)
    if not part:
        progress_lines.begin()
    with _watching(progress_lines.show, pulses):
        yield


class Lines:
    """Decides when a line of progress is due, and writes it."""

    last_line: float = math.nan
    """When this process wrote its last line of progress, by ``clock``. All stages share it:
    many short parts of steps are together a long silence."""

    def __init__(
        self,
        write: Callable[[str], None],
        title: str,
        total: float,
        unit: str,
        *,
        tenths: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``tenths``: whether a line is due at each tenth, too, and not only after a silence."""
        self._print, self._title, self._total, self._unit = write, title, total, unit
        self._tenths, self._clock, self._tenth = tenths, clock, 0
        if math.isnan(Lines.last_line):
            Lines.last_line = clock()

    def begin(self) -> None:
        """Write the line at the start."""
        total = f": {self._total:.0f} {self._unit}" if self._total else ""
        self._write(f"{self._title}{total}")

    def show(self, done: float, seconds: float) -> None:
        """Write a line if one is due.

        Args:
            done: units so far.
            seconds: since the start.
        """
        tenth = min(9, int(10 * done / self._total)) if self._total else 0
        due = self._tenths and tenth > self._tenth
        if not due and self._clock() - Lines.last_line < SILENCE_S:
            return
        self._tenth = max(tenth, self._tenth)
        left = f", {seconds * (self._total / done - 1):.0f} s left" if done else ""
        counted = f"{done:.0f}/{self._total:.0f} {self._unit}  {seconds:.0f} s{left}"
        if not self._total:
            counted = f"{seconds:.0f} s"
        elif done > self._total:  # which is an estimate
            counted = f"{done:.0f} {self._unit}  {seconds:.0f} s"
        self._write(f"{self._title}: {counted}")

    def _write(self, line: str) -> None:
        self._print(line)
        Lines.last_line = self._clock()


@contextmanager
def _watching(show: Callable[[float, float], None], pulses: Sequence[Count]) -> Iterator[None]:
    """Call ``show`` every ``PERIOD_S`` with the units and the seconds since the start."""
    before = [pulse.done for pulse in pulses]
    start, over = time.perf_counter(), threading.Event()

    def watch() -> None:
        while not over.wait(PERIOD_S):
            done = max(pulse.done - then for pulse, then in zip(pulses, before))
            show(done, time.perf_counter() - start)

    thread = threading.Thread(target=watch, name="stage", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
