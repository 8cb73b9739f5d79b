"""Environments of the kinds that extras add: ``KIND:ID``.

Options of a kind follow a question mark (``pettingzoo:classic/rps_v2?max_cycles=3``). A kind is
imported on first use.
"""

import importlib
import importlib.util

from coterie.cli.extras import ENVIRONMENT_KINDS
from coterie.datatypes import UserError, read_options
from coterie.envs.env_spec import EnvSpec


def is_other(name: str) -> bool:
    """Whether ``name`` is ``KIND:ID``."""
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind in ENVIRONMENT_KINDS


def spec_of(name: str) -> EnvSpec:
    """Return the spec of the environment ``name``.

    Raises:
        UserError: the kind's package is not installed or does not know the environment.
    """
    kind, _, rest = name.partition(":")
    package, installs, module, options = ENVIRONMENT_KINDS[kind]
    identity, texts = read_options(rest) if options else (rest.strip(), {})
    if not identity:
        raise UserError(f"env {name!r}: say which one after the colon, {kind}:ID.")
    if importlib.util.find_spec(package) is None:
        raise UserError(
            f"env {name!r} needs the package {package}; install it with coterie's extra "
            f'{installs}: pip install -e ".[{installs}]"'
        )
    return importlib.import_module(module).spec(name, identity, texts)
