"""Environments that other packages bring, by name: ``pettingzoo:classic/tictactoe_v3`` and so on.

A name is ``KIND:ID``, with options of the package's own behind a question mark
(``pettingzoo:classic/rps_v2?max_cycles=3``). Each kind is an optional extra of this package and is
imported when it is first asked for. ``discrete:`` takes an environment of the user's own by the
name that ``--env`` takes.
"""

import importlib
import importlib.util

from coterie.datatypes import UserError, read_options
from coterie.datatypes.extras import EnvironmentKind, extras
from coterie.datatypes.missing_extras import check_added
from coterie.envs.registry import EnvSpec

_CORE = {
    "pettingzoo": EnvironmentKind("pygame", "games", "coterie.envs.others.pettingzoo_game"),
    "gymnasium": EnvironmentKind("gymnasium", "", "coterie.envs.others.gymnasium_game"),
    "discrete": EnvironmentKind("pettingzoo", "", "coterie.envs.others.discrete_game"),
    "textarena": EnvironmentKind("textarena", "textarena", "coterie.envs.others.textarena_game"),
    "verifiers": EnvironmentKind("verifiers", "verifiers", "coterie.envs.others.verifiers_game"),
}


def kinds() -> dict[str, EnvironmentKind]:
    """What may stand before the colon of a name: kinds of the core, and of the extras here."""
    added = {name: kind for extra in extras() for name, kind in extra.environments.items()}
    return {**_CORE, **added}


def is_other(name: str) -> bool:
    """Whether ``name`` is ``KIND:ID``.

    Raises:
        MissingExtra: it is a kind of an extra that is not here.
    """
    kind, colon, _ = name.partition(":")
    if not colon:
        return False
    check_added(kind, f"env {name!r}")
    return kind in kinds()


def spec_of(name: str) -> EnvSpec:
    """What is known of the environment ``name``.

    Raises:
        UserError: its package is not installed, or knows no such environment.
    """
    kind, _, rest = name.partition(":")
    package, installs, module = kinds()[kind]
    identity, texts = read_options(rest)
    if not identity:
        raise UserError(f"env {name!r}: say which one behind the colon, {kind}:ID.")
    if importlib.util.find_spec(package) is None:
        raise UserError(
            f"env {name!r} needs the package {package}; install it with coterie's extra "
            f'{installs}: pip install -e ".[{installs}]"'
        )
    return importlib.import_module(module).spec(name, identity, texts)
