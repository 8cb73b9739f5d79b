"""The progress bar of a warm start."""

from types import TracebackType

from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars


class Progress:
    """One bar a phase, with the smoothed loss."""

    def __init__(self, role: str, seed: int) -> None:
        self._title = f"{role} (seed {seed})"
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}, loss {task.fields[loss]:.3f}"),
            TimeElapsedColumn(),
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Progress":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def report(self, phase: str, step: int, steps: int, loss: float) -> None:
        """What :func:`launch.tiny.teaching.curriculum.warm_start` says after each step."""
        if phase not in self._tasks:
            title = f"{self._title} {phase}"
            self._tasks[phase] = self._bars.add_task(title, total=steps, loss=loss)
        self._bars.update(self._tasks[phase], completed=step, loss=loss)
