"""A paper's settings over the defaults: ``--preset NAME``. Flags lie over the preset."""

import dataclasses
import difflib

from papers import PRESETS
from papers.preset import Preset
from training.plain import override
from training.train_settings import TrainSettings
from vocabulary import UserError


def preset(name: str) -> Preset:
    """The preset called ``name``.

    Raises:
        UserError: there is none.
    """
    if name in PRESETS:
        return PRESETS[name]
    near = difflib.get_close_matches(name, PRESETS, n=3)
    raise UserError(
        f"unknown preset '{name}'; {'near it' if near else 'known'}: "
        f"{', '.join(near or sorted(PRESETS))}"
    )


def lay_over(chosen: Preset, default: TrainSettings) -> TrainSettings:
    """``default`` with the paper's values laid over it."""
    algo = chosen.algo_values.get(default.choice.algo, {})
    agents = {
        role: dataclasses.replace(
            settings, model=chosen.models.get(role, settings.model), **chosen.agent
        )
        for role, settings in default.agents.items()
    }
    changed = override(default, {**chosen.values, "algo": algo})
    return dataclasses.replace(changed, agents=agents)
