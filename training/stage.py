"""Progress of a long stage of a run: its count, the time gone and the time left.

On a terminal there is a bar; elsewhere a line at the start, at each tenth, and wherever no line was
written for seconds. A thread shows it, since the event loop stands still while models compute.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from coterie.datatypes.pulse import ANSWERED, ENDED, LEARNED, LOADED, Pulse

PERIOD_S = 0.25
"""Seconds between two readings of the count."""
SILENCE_S = 4.0
"""Between two lines at most, elsewhere than on a terminal: a busy machine adds to it, and five
seconds are what a user waits before he wonders. About a part of a step it is the least, too."""


@contextmanager
def stage(
    console: Console,
    title: str,
    total: float,
    *,
    lines: bool = True,
    first: bool = True,
    least_s: float = 0.0,
    counted: Sequence[Pulse] = (ANSWERED, ENDED),
    unit: str = "answers",
) -> Iterator[None]:
    """Show the progress of the work inside.

    Args:
        console: on which it is shown.
        title: of the stage.
        total: about how many units it takes; 0: unknown.
        lines: whether to write lines where there is no terminal.
        first: whether to write a line at the start.
        least_s: fewest seconds between two lines, and before the first.
        counted: pulses that count it; of several, the one that is furthest.
        unit: of the total.
    """
    if console.is_terminal:
        with _bar(console, title, total, counted):
            yield
    elif lines:
        with _lines(console, title, total, counted, unit, first=first, least_s=least_s):
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
    """Show a part of a step like :func:`stage`. A short part shows nothing; on a terminal the
    run's own ``bar`` shows it."""
    if not lines:
        return nullcontext()
    if console.is_terminal:
        return nullcontext() if bar is None else _in_bar(bar, title, total, counted)
    return _lines(console, title, total, counted, unit, first=False, least_s=SILENCE_S)


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
    first: bool,
    least_s: float,
) -> Iterator[None]:
    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    due = Lines(say, title, total, unit, least_s=least_s)
    if first:
        due.begin()
    with _watching(due.show, counted):
        yield


class Lines:
    """When a line is due, and what it says."""

    heard: float = -math.inf
    """When this process wrote the last of all such lines, by ``clock``: parts of steps that are
    short each are together a long silence."""

    def __init__(
        self,
        say: Callable[[str], None],
        title: str,
        total: float,
        unit: str,
        *,
        least_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._title, self._total, self._unit = say, title, total, unit
        self._least_s, self._clock, self._tenth = least_s, clock, 0

    def begin(self) -> None:
        """The line at the start."""
        total = f": {self._total:.0f} {self._unit}" if self._total else ""
        self._write(f"{self._title}{total}")

    def show(self, done: float, seconds: float) -> None:
        """Write a line, if one is due: ``done`` of the total after so many ``seconds``."""
        tenth = min(9, int(10 * done / self._total)) if self._total else 0
        waited = self._clock() - Lines.heard
        if waited < SILENCE_S and (tenth <= self._tenth or waited < self._least_s):
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
