"""Where a step's numbers go: TensorBoard, metrics.jsonl, the terminal."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coterie.training.events import EventFile
from coterie.training.rundir import EVALUATIONS, METRICS, RunDirectory


class Logbook:
    """Scalars of every step, to every place that wants them.

    On a terminal there is a bar with the numbers that matter; elsewhere one line every tenth of
    the run.
    """

    def __init__(
        self, run: RunDirectory, console: Console, *, first: int, last: int, headline: Sequence[str]
    ) -> None:
        """Log steps ``first..last``; ``headline`` names the metrics that the bar shows."""
        self._run = run
        self._console = console
        self._first, self._last = first, last
        self._headline = headline
        self._events: EventFile | None = None
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=last, completed=first - 1, numbers="")
        self._since = time.perf_counter()

    def __enter__(self) -> "Logbook":
        with self._run.writing("tensorboard"):
            self._events = EventFile(self._run.path / "tensorboard", first=self._first)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        if self._events is not None:
            self._events.close()

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record one training step."""
        assert self._events is not None
        self._run.append(METRICS, [{"step": step, **metrics}])
        with self._run.writing("tensorboard"):
            self._events.scalars(step, metrics)
        numbers = "  ".join(
            f"{name.rpartition('/')[2] if name.count('/') < 2 else name.partition('/')[2]} "
            f"{metrics[name]:.2f}"
            for name in self._headline
            if name in metrics
        )
        self._bar.update(self._task, completed=step, numbers=numbers)
        tenth = max(1, self._last // 10)
        if not self._console.is_terminal and (step % tenth == 0 or step == self._first):
            seconds = time.perf_counter() - self._since
            self._console.print(f"step {step}/{self._last}  {numbers}  {seconds:.0f} s")

    def text(self, step: int, name: str, markdown: str) -> None:
        """Show a transcript in TensorBoard."""
        assert self._events is not None
        with self._run.writing("tensorboard"):
            self._events.text(step, name, markdown)

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record what was measured after a step."""
        assert self._events is not None
        self._run.append(EVALUATIONS, [{"step": step, **metrics}])
        with self._run.writing("tensorboard"):
            self._events.scalars(step, metrics)


def record(value: Any) -> Any:
    """Round floats of a log record, which are read and not computed with."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {key: record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [record(item) for item in value]
    return value
