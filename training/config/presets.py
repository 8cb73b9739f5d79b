"""Settings of a preset (``--preset NAME``); they override the defaults, and flags override them."""

import dataclasses

from coterie.envs.preset import Preset, Setting
from coterie.training.config.serialize import nested, override
from coterie.training.config.train_settings import TrainSettings


def settings_of(chosen: Preset, algo: str) -> dict[str, Setting]:
    """The settings of the preset with the algorithm ``algo``, by dotted name."""
    return {**chosen.settings, **chosen.algos.get(algo, {})}


def lay_over(chosen: Preset, default: TrainSettings) -> TrainSettings:
    """``default`` overridden by the values of the preset."""
    settings = settings_of(chosen, default.choice.algo)
    values = nested({path: setting.value for path, setting in settings.items()})
    for_all_agents = values.pop("agents", {})
    agents = {
        role: dataclasses.replace(
            agent, model=chosen.models.get(role, agent.model), **for_all_agents
        )
        for role, agent in default.agents.items()
    }
    return dataclasses.replace(override(default, values), agents=agents)
