"""Environments that other packages bring, by name: ``pettingzoo:classic/tictactoe_v3`` and so on.

A name is ``KIND:ID``, with options of the package's own behind a question mark
(``pettingzoo:classic/rps_v2?max_cycles=3``). Each kind is an optional extra of this package and is
imported when it is first asked for. ``discrete:`` takes an environment of the user's own by the
name that ``--env`` takes.
"""

import importlib
import importlib.util
from typing import NamedTuple

from coterie.datatypes import UserError, read_options
from coterie.envs.registry import EnvSpec


class _Kind(NamedTuple):
    package: str
    """What has to be installed, as it is imported."""
    extra: str
    """The extra of ours that installs it; empty where nothing more is needed."""
    module: str
    """The module of ours that holds the kind's ``Game``."""


KINDS = {
    "pettingzoo": _Kind("pygame", "games", "coterie.envs.others.pettingzoo_game"),
    "gymnasium": _Kind("gymnasium", "", "coterie.envs.others.gymnasium_game"),
    "discrete": _Kind("pettingzoo", "", "coterie.envs.others.discrete_game"),
    "textarena": _Kind("textarena", "textarena", "coterie.envs.others.textarena_game"),
    "verifiers": _Kind("verifiers", "verifiers", "coterie.envs.others.verifiers_game"),
}
"""What may stand before the colon of a name."""


def is_other(name: str) -> bool:
    """Whether ``name`` is ``KIND:ID``."""
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind in KINDS


def spec_of(name: str) -> EnvSpec:
    """What is known of the environment ``name``.

    Raises:
        UserError: its package is not installed, or knows no such environment.
    """
    kind, _, rest = name.partition(":")
    package, extra, module = KINDS[kind]
    identity, texts = read_options(rest)
    if not identity:
        raise UserError(f"env {name!r}: say which one behind the colon, {kind}:ID.")
    if importlib.util.find_spec(package) is None:
        raise UserError(
            f"env {name!r} needs the package {package}; install it with coterie's extra {extra}: "
            f'pip install -e ".[{extra}]"'
        )
    return importlib.import_module(module).spec(name, identity, texts)
