"""What a run cost so far, and its results in ``summary.json``."""

import time
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.table import Table

from coterie.datatypes import Trajectory
from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.json_values import plain_number
from coterie.training import STARTED


class Tally:
    """Seconds and sampled tokens; a checkpoint holds them as plain numbers."""

    def __init__(self, counters: Mapping[str, float]) -> None:
        """Continue from ``counters``, which :meth:`counters` returned; empty for a new run."""
        self.tokens = int(counters.get("tokens", 0))
        """Sampled tokens of all roles."""
        self.learner_tokens = int(counters.get("learner_tokens", 0))
        """Sampled tokens of the roles that learn."""
        self._wall_before = float(counters.get("wall_s", 0.0))

    def add(self, rows: Sequence[Trajectory], trained: Collection[str]) -> int:
        """Count the sampled tokens of a step's rows, and return their number."""
        tokens = sum(int(row.mask.sum()) for row in rows)
        self.tokens += tokens
        self.learner_tokens += sum(int(row.mask.sum()) for row in rows if row.role in trained)
        return tokens

    def wall_s(self) -> float:
        """Seconds since the process began, plus those before the run was resumed."""
        return self._wall_before + time.perf_counter() - STARTED

    def counters(self) -> dict[str, float]:
        """The counts as plain numbers, for a checkpoint."""
        return {
            "wall_s": self.wall_s(),
            "tokens": self.tokens,
            "learner_tokens": self.learner_tokens,
        }


def summary(
    before: Mapping[str, Resampled],
    after: Mapping[str, Resampled],
    wall_s: float,
    sampled_tokens: int,
    warmed_up: Mapping[str, Resampled] = MappingProxyType({}),
) -> dict[str, Any]:
    """Metrics of each evaluation with their 95 % intervals, and the cost, for ``summary.json``.

    Args:
        before: metric -> value before training.
        after: metric -> value after it.
        wall_s: seconds of the run.
        sampled_tokens: of all roles in training.
        warmed_up: metric -> value after the warm-up; empty without a warm-up.
    """
    moments = {"before": before, "warmed_up": warmed_up, "after": after}
    measured = {
        when: metrics for when, metrics in moments.items() if metrics or when != "warmed_up"
    }
    return {
        **{when: _values(metrics) for when, metrics in measured.items()},
        "intervals": {when: _intervals(metrics) for when, metrics in measured.items()},
        "wall_s": round(wall_s, 3),
        "sampled_tokens": sampled_tokens,
    }


def places_table(places: Sequence[Mapping[str, str]]) -> Table:
    """The rows of ``Backend.places`` or ``Backend.spent`` as a table."""
    table = Table(*places[0])
    for row in places:
        table.add_row(*row.values())
    return table


def _values(metrics: Mapping[str, Resampled]) -> dict[str, float | None]:
    return {name: plain_number(measured.value) for name, measured in metrics.items()}


def _intervals(metrics: Mapping[str, Resampled]) -> dict[str, list[float | None]]:
    return {
        name: [plain_number(bound) for bound in measured.interval()]
        for name, measured in metrics.items()
    }
