"""A paper's settings over the defaults: ``--preset NAME``. Flags lie over the preset."""

import dataclasses
import difflib
from collections.abc import Mapping

from coterie.datatypes import UserError
from coterie.papers import OWN, PRESETS
from coterie.papers.preset import Preset, Setting
from coterie.training.plain import nested, override
from coterie.training.train_settings import TrainSettings

KNOWN: Mapping[str, Preset] = {**PRESETS, **OWN}
"""What ``--preset`` takes."""


def preset(name: str) -> Preset:
    """The preset called ``name``.

    Raises:
        UserError: there is none.
    """
    if name in KNOWN:
        return KNOWN[name]
    near = difflib.get_close_matches(name, KNOWN, n=3)
    raise UserError(
        f"unknown preset '{name}'; {'near it' if near else 'known'}: "
        f"{', '.join(near or sorted(KNOWN))}"
    )


def settings_of(chosen: Preset, algo: str) -> dict[str, Setting]:
    """Everything that the preset sets where ``algo`` learns, by dotted name."""
    return {**chosen.settings, **chosen.algos.get(algo, {})}


def lay_over(chosen: Preset, default: TrainSettings) -> TrainSettings:
    """``default`` with the paper's values laid over it."""
    named = settings_of(chosen, default.choice.algo)
    values = nested({path: setting.value for path, setting in named.items()})
    every = values.pop("agents", {})
    agents = {
        role: dataclasses.replace(agent, model=chosen.models.get(role, agent.model), **every)
        for role, agent in default.agents.items()
    }
    return dataclasses.replace(override(default, values), agents=agents)
