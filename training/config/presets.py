"""A preset's settings over the defaults: ``--preset NAME``. Flags lie over the preset."""

import dataclasses

from coterie.envs.preset import Preset, Setting
from coterie.training.config.serialize import nested, override
from coterie.training.config.train_settings import TrainSettings


def settings_of(chosen: Preset, algo: str) -> dict[str, Setting]:
    """All settings of the preset with the algorithm ``algo``, by dotted name."""
    return {**chosen.settings, **chosen.algos.get(algo, {})}


def lay_over(chosen: Preset, default: TrainSettings) -> TrainSettings:
    """``default`` with the preset's values laid over it."""
    named = settings_of(chosen, default.choice.algo)
    values = nested({path: setting.value for path, setting in named.items()})
    every = values.pop("agents", {})
    agents = {
        role: dataclasses.replace(agent, model=chosen.models.get(role, agent.model), **every)
        for role, agent in default.agents.items()
    }
    return dataclasses.replace(override(default, values), agents=agents)
