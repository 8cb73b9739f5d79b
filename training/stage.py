"""A long stage of a run as it is seen from outside: how far it is, the time gone, the time left.

On a terminal there is a bar, which moves while the process computes; elsewhere a line at the start
and one at each tenth. A thread of its own shows it, as the event loop stands still meanwhile.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from coterie.datatypes.pulse import ANSWERED, ENDED, LOADED, Pulse

PERIOD_S = 0.25
"""Between two looks at the count."""
SILENCE_S = 5.0
"""Between two lines about a part of a step, and before the first."""


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
    """Show how far it is while what is inside runs.

    Args:
        console: where.
        title: what is being done.
        total: answers that it takes, about; 0: nobody knows.
        lines: whether to write lines where there is no terminal.
        first: one of them at the start.
        least_s: seconds between two of them at least, and before the first one.
        counted: what is counted; where that is several things, the one that is furthest.
        unit: what the total is of.
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
    console: Console, title: str, total: float, *, lines: bool
) -> AbstractContextManager[None]:
    """The same of a part of a step, which says nothing as long as that is short. On a terminal the
    run's own bar moves."""
    lines = lines and not console.is_terminal
    return stage(console, title, total, first=False, least_s=SILENCE_S) if lines else nullcontext()


def checking(*, lines: bool) -> AbstractContextManager[None]:
    """The same of what is looked at before anything is loaded, if that takes long."""
    title = "checking settings, models and problems"
    return stage(Console(), title, 0) if lines else nullcontext()


def loading(
    console: Console, models: Collection[str], *, lines: bool
) -> AbstractContextManager[None]:
    """The same of models that are loaded, role by role."""
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
    last, said_s = 0, 0.0

    def show(done: float, seconds: float) -> None:
        nonlocal last, said_s
        if not total:
            return
        tenth = min(9, int(10 * done / total))
        if tenth > last and seconds - said_s >= least_s:
            last, said_s = tenth, seconds
            left = seconds * max(0.0, total / done - 1)
            say(f"{title}: {done:.0f}/{total:.0f} {unit}  {seconds:.0f} s, {left:.0f} s left")

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    if first:
        say(f"{title}: {total:.0f} {unit}" if total else title)
    with _watching(show, counted):
        yield


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
