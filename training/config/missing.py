"""What a run is told that an extra would understand which is not here."""

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.agents.team.settings import AgentSettings
from coterie.cli.missing_extras import (
    MissingExtra,
    check_added,
    fields_of_missing,
    missing_extra,
)
from coterie.training.config.run_settings import RunSettings

IDLE: Mapping[str, Mapping[str, Any]] = {"cluster": {"address": "none"}}
"""Section of an extra -> the settings with which it does nothing, whatever else it says."""


def check_flags(argv: Sequence[str]) -> None:
    """Refuse flags of train.py that such an extra would add.

    Raises:
        MissingExtra: there is one.
    """
    for word in argv:
        flag = word.partition("=")[0]
        section, *path = flag.removeprefix("--").split(".")
        if section == flag:
            continue  # a value
        check_added(section, flag)
        if path and section != "agents":
            continue
        kind, name = (AgentSettings, path[-1]) if path else (RunSettings, section)
        if extra := fields_of_missing(kind).get(name.replace("-", "_")):
            raise MissingExtra(flag, extra)


def without_missing(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by section, without those of extras that are not here.

    Raises:
        MissingExtra: such a section does something.
    """
    kept = dict(plain)
    for name, idle in IDLE.items():
        if name not in kept or (extra := missing_extra(name)) is None:
            continue
        section = kept.pop(name)
        given = section if isinstance(section, Mapping) else {}
        for setting, value in idle.items():
            if (used := given.get(setting, value)) != value:
                raise MissingExtra(f"--{name}.{setting.replace('_', '-')} {used}", extra)
    return kept
