"""Stored figures of a baseline, for the final table of a run with default settings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coterie import envs
from coterie.training.config.train_settings import Choice, TrainSettings, defaults

_PARTS = ("env", "algo", "agents", "learner", "problems", "rollout", "warmup", "scoring")
_OF_RUN = ("steps", "tokens", "group_by")
_OF_EVALUATION = ("temperature", "top_p")


@dataclass(frozen=True)
class Baseline:
    """Stored results of another way to train, on the same problems with as many tokens."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the evaluation after training; empty: nothing is stored for this run."""
    command: str = ""
    """The command of the baseline's runs."""
    seeds: tuple[int, ...] = ()
    """The seeds of these runs; the metrics are means over them."""

    @property
    def sentence(self) -> str:
        """The explanation of the table's column."""
        return (
            f"alone: trained without a peer on as many tokens, a stored mean of {len(self.seeds)} "
            f"seeds of {self.command}"
        )


def baseline(settings: TrainSettings) -> Baseline:
    """The baseline stored with the run's environment; empty if settings other than the seed differ
    from the environment's defaults."""
    spec = envs.spec(settings.choice.env)
    if spec.baseline is None:
        return Baseline()
    stored = json.loads(spec.baseline.read_text(encoding="utf-8"))
    usual = defaults(Choice(spec.name, stored["algo"], spec.roles))
    if _compared(settings) != _compared(usual):
        return Baseline()
    return Baseline(stored["metrics"], stored["command"], tuple(stored["seeds"]))


def _compared(settings: TrainSettings) -> list[Any]:
    return [
        *(getattr(settings, part) for part in _PARTS),
        *(getattr(settings.run, name) for name in _OF_RUN),
        *(getattr(settings.eval, name) for name in _OF_EVALUATION),
    ]
