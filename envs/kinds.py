"""Environments of a kind that an extra registers: ``KIND:ID``.

Options of a kind follow a question mark (``pettingzoo:classic/rps_v2?max_cycles=3``). A kind is
imported on first use.
"""

import importlib
import importlib.util

from coterie.cli.extras import EnvironmentKind, extras
from coterie.cli.missing_extras import check_added
from coterie.datatypes import UserError, read_options
from coterie.envs.registry import EnvSpec


def kinds() -> dict[str, EnvironmentKind]:
    """What may stand before the colon of a name."""
    return {name: kind for extra in extras() for name, kind in extra.environments.items()}


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
    """Return the spec of the environment ``name``.

    Raises:
        UserError: the kind's package is not installed or does not know the environment.
    """
    kind, _, rest = name.partition(":")
    package, installs, module, options = kinds()[kind]
    identity, texts = read_options(rest) if options else (rest.strip(), {})
    if not identity:
        raise UserError(f"env {name!r}: say which one after the colon, {kind}:ID.")
    if importlib.util.find_spec(package) is None:
        raise UserError(
            f"env {name!r} needs the package {package}; install it with coterie's extra "
            f'{installs}: pip install -e ".[{installs}]"'
        )
    return importlib.import_module(module).spec(name, identity, texts)
