"""The settings of the papers, by name.

A preset lays its values over the defaults; flags lay theirs over the preset. Where the authors'
text leaves a number open, it is the one of their reference configuration; ``docs/presets.md`` lists
every difference from our defaults.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training.plain import override
from training.train_settings import TrainSettings

# The papers name AdamW and no decay rates: those of PyTorch, which their frameworks leave alone.
ADAMW_BETAS = (0.9, 0.999)


@dataclass(frozen=True)
class Preset:
    """A paper's setting."""

    source: str
    env: str
    algo: str
    models: Mapping[str, str]
    """Role -> hub id; a team of other roles takes the rest and names its own models."""
    values: Mapping[str, Any]
    agent: Mapping[str, Any] = field(default_factory=dict)
    """How every role is trained."""
    algo_values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Algorithm -> what the paper sets of it."""

    def over(self, default: TrainSettings) -> TrainSettings:
        """``default`` with the paper's values laid over it."""
        algo = self.algo_values.get(default.choice.algo, {})
        agents = {
            role: dataclasses.replace(
                settings, model=self.models.get(role, settings.model), **self.agent
            )
            for role, settings in default.agents.items()
        }
        changed = override(default, {**self.values, "algo": algo})
        return dataclasses.replace(changed, agents=agents)
