"""The settings of the papers, by name."""

import difflib
from collections.abc import Mapping

from launch.presets.core_teaching import core_presets
from launch.presets.corea_deferral import corea_presets
from launch.presets.eapo_consultation import eapo_presets
from launch.presets.preset import Preset
from launch.presets.sd_e2 import sd_e2_presets
from vocabulary import UserError

__all__ = ["PRESETS", "Preset", "preset"]

PRESETS: Mapping[str, Preset] = {
    **core_presets(),
    **corea_presets(),
    **eapo_presets(),
    **sd_e2_presets(),
}


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
