"""Where a run's numbers and episodes go beside its directory."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from coterie.cli.extras import SINK
from coterie.cli.plugins import load
from coterie.datatypes import Episode
from coterie.training.config.run_settings import RunSettings
from coterie.training.run.directory import RunDirectory


class Sink(Protocol):
    """Is given what TensorBoard is given. It watches: whatever fails in it ends no run."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers by their names."""
        ...

    def episodes(
        self, step: int, episodes: Sequence[Episode], advantages: Mapping[int, float]
    ) -> None:
        """A step's episodes, wherever TensorBoard has a transcript; ``advantages`` by
        ``id(trajectory)``, of those that entered a loss."""
        ...

    def close(self) -> None:
        """Wait for what is still to be written or sent."""
        ...


class OpenSink(Protocol):
    """Opens the sink of a run, or goes on with it; None: the run has asked for none."""

    def __call__(
        self, settings: RunSettings, run: RunDirectory, tell: Callable[[str], None]
    ) -> Sink | None: ...


def open_sinks(settings: RunSettings, run: RunDirectory, tell: Callable[[str], None]) -> list[Sink]:
    """Open the sinks of a run; ``tell`` shows a sentence."""
    open_sink: OpenSink = load(SINK, "the sink of numbers")
    sink = open_sink(settings, run, tell)
    return [] if sink is None else [sink]
