"""The log of each step's numbers: metrics.jsonl, TensorBoard, the terminal, sinks of extras."""

import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from coterie.datatypes import Episode
from coterie.evaluation.table import without_zero
from coterie.training.run.directory import EVALUATIONS, METRICS, RunDirectory
from coterie.training.run.sinks import Sink
from coterie.training.run.stage_progress import Lines
from coterie.training.run.tensorboard_events import EventFile

_WIDTH_FOR_BAR = 100


class Logbook:
    """Writes the scalars of every step to all logs.

    A terminal shows a progress bar with the headline numbers. Elsewhere a line is printed after the
    first step and after every tenth of the run.
    """

    def __init__(
        self,
        run: RunDirectory,
        console: Console,
        *,
        first: int,
        last: int,
        headline: Sequence[str],
        sinks: Sequence[Sink] = (),
        stage: str = "",
    ) -> None:
        """
        Args:
            run: holds the logs.
            console: shows progress.
            first: number of the first step that will be logged.
            last: number of the last step.
            headline: names of the metrics that the console shows.
            sinks: also get the numbers; they are closed with the log.
            stage: of the run; empty: training. Another stage has log files of its name.
        """
        self._stage, self._log = stage, f"{stage}.jsonl" if stage else METRICS
        self._folder = "/".join(("tensorboard", *([stage] if stage else [])))
        self._sinks = sinks
        self._run = run
        self._console = console
        self._first, self._last = first, last
        self._headline = headline
        self._events: EventFile | None = None
        columns: list[ProgressColumn] = [
            *([TextColumn(stage)] if stage else []),
            TextColumn("{task.completed}/{task.total}", table_column=Column(min_width=7)),
            TimeElapsedColumn(table_column=Column(min_width=7)),
            TextColumn("+"),
            TimeRemainingColumn(compact=True, table_column=Column(min_width=5)),
            # The only column that is cut off in a narrow terminal.
            TextColumn(
                "left {task.fields[part]}{task.fields[numbers]}",
                table_column=Column(no_wrap=True),
                markup=False,
            ),
        ]
        self._bar = Progress(
            *([BarColumn(bar_width=24)] if console.width > _WIDTH_FOR_BAR else []),
            *columns,
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=last, completed=first - 1, part="", numbers="")
        self._since = time.perf_counter()

    def __enter__(self) -> "Logbook":
        with self._run.writing(self._folder):
            self._events = EventFile(self._run.path / self._folder, first=self._first)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        for sink in self._sinks:
            sink.close()
        if self._events is not None:
            self._events.close()

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record one training step."""
        self._run.append(self._log, [{"step": step, **metrics}])
        self._scalars(step, metrics)
        numbers = _in_short({name: metrics.get(name) for name in self._headline})
        self._bar.update(self._task, completed=step, numbers=numbers)
        tenth = 10 * step // self._last > 10 * (step - 1) // self._last
        if not self._console.is_terminal and (tenth or step == self._first):
            seconds = time.perf_counter() - self._since
            left = seconds / (step - self._first + 1) * (self._last - step)
            self._console.print(
                f"{self._stage or 'step'} {step}/{self._last}  {numbers}  {seconds:.0f} s, "
                f"{left:.0f} s left",
                soft_wrap=True,
            )
            Lines.last_line = time.monotonic()

    def part(self, text: str) -> None:
        """Show the current part of a step on the bar; an empty ``text`` clears it."""
        self._bar.update(self._task, part=f"[{text}] " if text else "")

    def text(self, step: int, name: str, markdown: str) -> None:
        """Show a transcript in TensorBoard."""
        assert self._events is not None
        with self._run.writing("tensorboard"):
            self._events.text(step, name, markdown)

    def episodes(
        self, step: int, episodes: Sequence[Episode], advantages: Mapping[int, float]
    ) -> None:
        """Forward episodes to the sinks; arguments as of
        :meth:`coterie.training.run.sinks.Sink.episodes`."""
        for sink in self._sinks:
            sink.episodes(step, episodes, advantages)

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of an evaluation after a step."""
        self._run.append(EVALUATIONS, [{"step": step, **metrics}])
        self._scalars(step, metrics)

    def _scalars(self, step: int, metrics: Mapping[str, float]) -> None:
        assert self._events is not None
        with self._run.writing("tensorboard"):
            self._events.scalars(step, metrics)
        for sink in self._sinks:
            sink.scalars(step, metrics)


def _in_short(metrics: Mapping[str, float | None]) -> str:
    """Metrics in one line: ``alice, bob: reward .42 1.67  correct .50 –``."""
    # Metric without its role -> role (empty: not a role's) -> number.
    values: dict[str, dict[str, str]] = {}
    for name, value in metrics.items():
        kind, *rest = name.split("/")
        role, *what = rest if kind in ("reward", "measured", "loss") else ("", name)
        shown = "–" if value is None else without_zero(value)
        values.setdefault("/".join(what) or kind, {})[role] = shown
    roles = list(dict.fromkeys(role for by_role in values.values() for role in by_role if role))
    prefix = f"{', '.join(roles)}: " if len(roles) > 1 else ""
    return prefix + "  ".join(
        " ".join([name, *(by_role.get(role, "–") for role in ([""] if "" in by_role else roles))])
        for name, by_role in values.items()
        if set(by_role.values()) != {"–"}
    )
