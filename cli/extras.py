"""What an extra may add to the core, which imports none.

An extra is a package with an entry point in the group ``coterie.extras``, whose value is an
:class:`Extra`. Those of this repository are the folders of ``extras/``. An extra whose package is
gone is absent: what it would add cannot be asked for, and all else is as it was. Whatever an extra
adds is named by its path, ``module:attribute``, and loaded when it is asked for.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from coterie.cli.plugins import Plugins, load, origin
from coterie.datatypes.errors import UserError

PLUGINS = Plugins("coterie.extras", "extra")
_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


class Program(NamedTuple):
    """``coterie NAME``."""

    module: str
    """Its ``main(argv)`` returns the exit code."""
    what: str
    """Its line in the list of programs."""


class Comparison(NamedTuple):
    """``benchmark.py NAME``."""

    module: str
    settings: str
    """The module's class of settings."""
    run: str
    """The module's function that takes them."""
    what: str = ""
    """Its line in the list of comparisons."""
    takes: str = ""
    """What stands after its name in that line."""


class EnvironmentKind(NamedTuple):
    """``--env KIND:ID``."""

    package: str
    """What has to be installed, as it is imported."""
    installs: str
    """The optional dependencies of ours that install it; empty where nothing more is needed."""
    module: str
    """Its ``spec(name, identity, options)`` returns the :class:`coterie.envs.EnvSpec`."""
    options: bool = True
    """Whether options stand after a question mark; else it belongs to ID."""


@dataclass(frozen=True)
class Extra:
    """What one extra adds."""

    name: str
    programs: Mapping[str, Program] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    environments: Mapping[str, EnvironmentKind] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Section -> its frozen dataclass: flags ``--SECTION.*`` of train.py, a part of config.json."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Flag of train.py -> what it does in place of training: a function of the settings, and of
    another one that checks them and returns the problems; it returns the exit code."""
    host: str = ""
    """A :class:`coterie.training.hosts.Host`: holds models, or plays episodes, elsewhere."""
    sink: str = ""
    """A :class:`coterie.training.run.sinks.OpenSink`: where a run's numbers go besides."""
    check: str = ""
    """A function that refuses settings of a run, once its models have been looked at."""


@lru_cache(maxsize=1)
def extras() -> tuple[Extra, ...]:
    """All that are here, in the order of their names."""
    return tuple(_read(entry) for entry in sorted(_entries()) if _is_here(entry.module))


def load_each(part: Literal["host", "sink", "check"]) -> list[Any]:
    """What the extras name as this part."""
    return [
        load(path, f"extra {extra.name!r}") for extra in extras() if (path := getattr(extra, part))
    ]


def load_all(paths: Mapping[str, str]) -> dict[str, Any]:
    """What each path names."""
    return {name: load(path, f"{name} of an extra") for name, path in paths.items()}


def has(extra: str) -> bool:
    """Whether an extra of this name is here."""
    return any(here.name == extra for here in extras())


def _entries() -> list[EntryPoint]:
    """What all packages register. Of this one in a checkout, what its ``pyproject.toml`` says by
    now: what was noted when it was installed may be older."""
    entries = PLUGINS.entries()
    if not _PROJECT.is_file():
        return entries
    project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
    own = project["entry-points"][PLUGINS.group]
    others = [entry for entry in entries if entry.name not in own]
    return others + [EntryPoint(name, path, PLUGINS.group) for name, path in own.items()]


def _is_here(module: str) -> bool:
    """Whether its package has it, and not just another copy of that package, installed editable."""
    name, *parts = module.split(".")
    spec = find_spec(name)
    for part in parts:
        if spec is None:
            return False
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    return spec is not None


def _read(entry: EntryPoint) -> Extra:
    title = f"extra {entry.name!r} ({origin(entry)})"
    extra = load(entry.value, title)
    if not isinstance(extra, Extra) or extra.name != entry.name:
        raise UserError(f"{title} must be a coterie.cli.extras.Extra of that name.")
    return extra
