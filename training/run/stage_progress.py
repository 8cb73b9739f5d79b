"""Progress of a long stage of a run: its count, the time gone and the time left.

On a terminal there is a bar; elsewhere a line at the start, at each tenth, and after a minute of
silence. A part of a step has a line only then. A thread shows it, since the event loop stands still
while models compute.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from coterie.cli.progress import ANSWERED, ENDED, LEARNED, LOADED, Pulse

PERIOD_S = 0.25
"""Seconds between two readings of the count."""
SILENCE_S = 60.0
"""Longest silence elsewhere than on a terminal."""


@contextmanager
def stage(
    console: Console,
    title: str,
    total: float,
    *,
    lines: bool = True,
    counted: Sequence[Pulse] = (ANSWERED, ENDED),
    unit: str = "answers",
) -> Iterator[None]:
    """Show the progress of the work inside.

    Args:
        console: on which it is shown.
        title: of the stage.
        total: about how many units it takes; 0: unknown.
        lines: whether to write lines where there is no terminal.
        counted: pulses that count it; of several, the one that is furthest.
        unit: of the total.
    """
    if console.is_terminal:
        with _bar(console, title, total, counted):
            yield
    elif lines:
        with _lines(console, title, total, counted, unit):
            yield
    else:
        yield


def stage_of_step(
    console: Console,
    title: str,
    total: float,
    *,
    lines: bool,
    bar: Callable[[str], None] | None = None,
    counted: Sequence[Pulse] = (ANSWERED, ENDED),
    unit: str = "answers",
) -> AbstractContextManager[None]:
    """Show a part of a step after a minute of silence; on a terminal the run's own ``bar`` shows
    it at once. Arguments as of :func:`stage`."""
    if not lines:
        return nullcontext()
    if console.is_terminal:
        return nullcontext() if bar is None else _in_bar(bar, title, total, counted)
    return _lines(console, title, total, counted, unit, part=True)


def learning(
    console: Console, step: str, rows: float, *, lines: bool, bar: Callable[[str], None] | None
) -> AbstractContextManager[None]:
    """Show a step's update of ``rows`` rows, like :func:`stage_of_step`."""
    title = f"{step}: learning"
    return stage_of_step(
        console, title, rows, lines=lines, bar=bar, counted=(LEARNED,), unit="rows"
    )


def checking(*, lines: bool) -> AbstractContextManager[None]:
    """Show the checks before anything is loaded, like :func:`stage`, if they take long."""
    title = "checking settings, models and problems"
    return stage(Console(), title, 0) if lines else nullcontext()


def loading(
    console: Console, models: Collection[str], *, lines: bool
) -> AbstractContextManager[None]:
    """Show the loading of models role by role, like :func:`stage`."""
    title = f"loading {', '.join(dict.fromkeys(models))}"
    return stage(console, title, len(models), lines=lines, counted=(LOADED,), unit="roles")


@contextmanager
def _bar(console: Console, title: str, total: float, counted: Sequence[Pulse]) -> Iterator[None]:
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
            # What takes more answers than was reckoned is nearly done until it is.
            bar.update(task, completed=min(done, total) if total else done)

        with _watching(show, counted):
            yield


@contextmanager
def _in_bar(
    bar: Callable[[str], None], title: str, total: float, counted: Sequence[Pulse]
) -> Iterator[None]:
    what = title.rpartition(": ")[2]

    def show(done: float, seconds: float) -> None:
        bar(f"{what} {min(done, total):.0f}/{total:.0f}" if total else what)

    try:
        with _watching(show, counted):
            yield
    finally:
        bar("")


@contextmanager
def _lines(
    console: Console,
    title: str,
    total: float,
    counted: Sequence[Pulse],
    unit: str,
    *,
    part: bool = False,
) -> Iterator[None]:
    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    due = Lines(say, title, total, unit, tenths=not part)
    if not part:
        due.begin()
    with _watching(due.show, counted):
        yield


class Lines:
    """When a line is due, and what it says."""

    heard: float = math.nan
    """When this process wrote its last line of progress, by ``clock``: parts of steps that are
    short each are together a long silence."""

    def __init__(
        self,
        say: Callable[[str], None],
        title: str,
        total: float,
        unit: str,
        *,
        tenths: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``tenths``: whether a line is due at each tenth, or after a silence only."""
        self._say, self._title, self._total, self._unit = say, title, total, unit
        self._tenths, self._clock, self._tenth = tenths, clock, 0
        if math.isnan(Lines.heard):
            Lines.heard = clock()

    def begin(self) -> None:
        """The line at the start."""
        total = f": {self._total:.0f} {self._unit}" if self._total else ""
        self._write(f"{self._title}{total}")

    def show(self, done: float, seconds: float) -> None:
        """Write a line, if one is due: ``done`` of the total after so many ``seconds``."""
        tenth = min(9, int(10 * done / self._total)) if self._total else 0
        due = self._tenths and tenth > self._tenth
        if not due and self._clock() - Lines.heard < SILENCE_S:
            return
        self._tenth = max(tenth, self._tenth)
        count = f"{min(done, self._total):.0f}/{self._total:.0f} {self._unit}  "
        left = f", {seconds * max(0.0, self._total / done - 1):.0f} s left" if done else ""
        counted = f"{count}{seconds:.0f} s{left}" if self._total else f"{seconds:.0f} s"
        self._write(f"{self._title}: {counted}")

    def _write(self, line: str) -> None:
        self._say(line)
        Lines.heard = self._clock()


@contextmanager
def _watching(show: Callable[[float, float], None], counted: Sequence[Pulse]) -> Iterator[None]:
    """Call ``show`` with the count since now and the seconds that took, again and again."""
    before = [pulse.done for pulse in counted]
    start, over = time.perf_counter(), threading.Event()

    def watch() -> None:
        while not over.wait(PERIOD_S):
            done = max(pulse.done - then for pulse, then in zip(counted, before))
            show(done, time.perf_counter() - start)

    thread = threading.Thread(target=watch, name="stage", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
