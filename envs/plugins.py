"""Environments that installed packages bring, by packaging entry point."""

import importlib
import sys
import warnings
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

from vocabulary import UserError

ENTRY_POINTS = "coterie.environments"
"""Entry-point group. An entry's name is what ``--env`` takes; its value is an ``envs.EnvSpec``, a
PettingZoo environment class, or a function that makes one."""


def plugin_names() -> set[str]:
    """Every name that a package registers; nothing is loaded."""
    return {entry.name for entry in _entries(tuple(sys.path))}


def plugin_called(name: str) -> EntryPoint | None:
    """The one registration of ``name``, if there is any.

    Raises:
        UserError: there are several.
    """
    found = list(_entries(tuple(sys.path)).select(name=name))
    if len(found) > 1:
        raise UserError(
            f"env {name!r} is registered {len(found)} times: "
            f"{'; '.join(sorted(map(origin, found)))}. Uninstall all but one, or use "
            "pkg.module:Class."
        )
    return found[0] if found else None


def warn_of_namesakes(name: str) -> None:
    """Say that registrations under the name of an environment of ours are passed over."""
    for entry in _entries(tuple(sys.path)).select(name=name):
        warnings.warn(
            f"env {name!r} is one of ours; {origin(entry)} is passed over. Its author must choose "
            f"another name; until then use --env {entry.value}.",
            stacklevel=3,
        )


def origin(entry: EntryPoint) -> str:
    """Who registered what, for messages."""
    package = f" of package {entry.dist.name}" if entry.dist else ""
    return f"entry point {entry.value}{package}"


def load(path: str, title: str) -> Any:
    """What ``path`` (``module:attribute``) names.

    Args:
        path: where it is.
        title: what the error message begins with.

    Raises:
        UserError: whatever an import of somebody else's module raises, as one sentence.
    """
    module_name, _, attribute = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in filter(None, attribute.split(".")):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise UserError(f"{title} cannot be loaded: {type(error).__name__}: {error}.") from error
    return found


@lru_cache(maxsize=1)
def _entries(path: tuple[str, ...]) -> EntryPoints:
    """The group's entries on ``sys.path``, which is read from disk once."""
    return entry_points(group=ENTRY_POINTS)
