"""Stored figures of a baseline, which stand in the table of a run by the defaults."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coterie import envs
from coterie.training.train_settings import Choice, TrainSettings, defaults

_PARTS = ("env", "algo", "agents", "learner", "problems", "rollout")
_OF_RUN = ("steps", "tokens", "group_by")


@dataclass(frozen=True)
class Baseline:
    """What another way to train makes of the same problems with as many tokens."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the evaluation after training, by name; empty: nothing is stored for this run."""
    command: str = ""
    """Makes such a run."""
    seeds: tuple[int, ...] = ()
    """The metrics are means over runs with these."""

    @property
    def sentence(self) -> str:
        """What the column is."""
        return (
            f"alone: as many tokens without a peer, stored, mean of {len(self.seeds)} seeds: "
            f"{self.command}"
        )


def baseline(settings: TrainSettings) -> Baseline:
    """The one stored beside the run's environment, if the run does what that does by default: any
    seed, but no other models, problems, learning or length."""
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
