"""summary.json: the result of a run, for people and for scripts."""

from collections.abc import Mapping
from typing import Any

from evaluation.evaluation import Resampled
from evaluation.numbers import plain_number


def summary(
    before: Mapping[str, Resampled],
    after: Mapping[str, Resampled],
    *,
    wall_s: float,
    sampled_tokens: int,
    steps: int,
    config: Mapping[str, Any],
) -> dict[str, Any]:
    """Flat metrics before and after, their 95 % intervals, and what the run took."""
    return {
        "before": _values(before),
        "after": _values(after),
        "intervals": {"before": _intervals(before), "after": _intervals(after)},
        "wall_s": round(wall_s, 3),
        "sampled_tokens": sampled_tokens,
        "steps": steps,
        "config": dict(config),
    }


def _values(metrics: Mapping[str, Resampled]) -> dict[str, float | None]:
    return {name: plain_number(measured.value) for name, measured in metrics.items()}


def _intervals(metrics: Mapping[str, Resampled]) -> dict[str, list[float | None]]:
    return {
        name: [plain_number(bound) for bound in measured.interval()]
        for name, measured in metrics.items()
    }
