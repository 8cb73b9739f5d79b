"""Stored figures of a baseline, which stand in the table of a run by the defaults."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coterie import envs
from coterie.training.config.train_settings import Choice, TrainSettings, defaults

_PARTS = ("env", "algo", "agents", "learner", "problems", "rollout")
_OF_RUN = ("steps", "tokens", "group_by")


@dataclass(frozen=True)
class Baseline:
    """Stored results of another way to train, on the same problems with as many tokens."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the evaluation after training; empty: nothing is stored for this run."""
    command: str = ""
    """The command of such a run."""
    seeds: tuple[int, ...] = ()
    """The seeds of the runs over which the metrics are means."""

    @property
    def sentence(self) -> str:
        """The explanation of the table's column."""
        return (
            f"alone: as many tokens without a peer, stored, mean of {len(self.seeds)} seeds: "
            f"{self.command}"
        )


def baseline(settings: TrainSettings) -> Baseline:
    """The baseline stored with the run's environment; empty where the run differs from the
    environment's defaults in more than its seed."""
    spec = envs.spec(settings.choice.env)
    if spec.baseline is None:
        return Baseline()
    stored = json.loads(spec.baseline.read_text(encoding="utf-8"))
    usual = defaults(Choice(spec.name, stored["algo"], spec.roles))
    if _compared(settings) != _compared(usual):
        return Baseline()
    return Baseline(stored["metrics"], stored["command"], tuple(stored["seeds"]))


def _compared(settings: TrainSettings) -> list[Any]:
    own = [getattr(settings, part) for part in _PARTS]
    return own + [getattr(settings.run, name) for name in _OF_RUN]
