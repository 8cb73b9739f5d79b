"""Sinks: further places for a run's numbers and episodes, such as wandb."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from coterie.cli.extras import SINK
from coterie.cli.plugins import load
from coterie.datatypes import Episode
from coterie.training.config.run_settings import RunSettings
from coterie.training.run.directory import RunDirectory


class Sink(Protocol):
    """Receives what TensorBoard receives. Its methods never raise, so no failure ends a run."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Take the numbers of a step by their names."""
        ...

    def episodes(
        self, step: int, episodes: Sequence[Episode], advantages: Mapping[int, float]
    ) -> None:
        """Take the episodes of a step with a transcript (``--transcripts-every``).

        Args:
            step: from 1.
            episodes: all of the step.
            advantages: ``id(trajectory)`` -> advantage, of those that entered a loss.
        """
        ...

    def close(self) -> None:
        """Wait until everything is written and sent."""
        ...


def open_sinks(settings: RunSettings, run: RunDirectory, tell: Callable[[str], None]) -> list[Sink]:
    """Open the sinks of a run; ``tell`` shows a sentence."""
    sink: Sink | None = load(SINK, "the sink of numbers")(settings, run, tell)
    return [] if sink is None else [sink]
