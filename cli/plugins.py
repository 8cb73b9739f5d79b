"""Plug-ins by name: an attribute of a module, or a package's entry point."""

import importlib
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import Distribution, EntryPoint, EntryPoints, distributions, entry_points
from pathlib import Path
from typing import Any

from coterie.datatypes.errors import UserError, cause_of, did_you_mean


@dataclass(frozen=True)
class Plugins:
    """The plug-ins that installed packages register in an entry-point group; nothing is loaded."""

    group: str
    kind: str
    """The kind of plug-in in messages, such as ``env``."""

    def names(self) -> set[str]:
        """Every name that a package registers."""
        return {entry.name for entry in self.entries()}

    def entries(self, name: str | None = None) -> list[EntryPoint]:
        """All registrations, or those of ``name``."""
        wanted = {} if name is None else {"name": name}
        return list(_registered(tuple(sys.path)).select(group=self.group, **wanted))

    def find(self, name: str, known: Collection[str]) -> tuple[str, str]:
        """(the path ``module:attribute`` of a plug-in, the beginning of messages about it).

        Args:
            name: a registered name, or a path.
            known: names that the message lists if ``name`` is neither.

        Raises:
            UserError: ``name`` is neither, or is registered several times.
        """
        entries = self.entries(name)
        if len(entries) > 1:
            raise UserError(
                f"{self.kind} {name!r} is registered {len(entries)} times: "
                f"{'; '.join(sorted(map(origin, entries)))}. Uninstall all but one, or use "
                "pkg.module:NAME."
            )
        if entries:
            return entries[0].value, f"{self.kind} {name!r} ({origin(entries[0])})"
        if ":" in name:
            return name, f"{self.kind} {name!r}"
        near = did_you_mean(name, known)
        ways = f"{near}known: {', '.join(known)}; or use" if known else "use"
        raise UserError(f"unknown {self.kind} {name!r}; {ways} pkg.module:NAME.")


def origin(entry: EntryPoint) -> str:
    """An entry point's value and package, for messages."""
    package = f" of package {entry.dist.name}" if entry.dist else ""
    return f"entry point {entry.value}{package}"


def load(path: str, title: str) -> Any:
    """Import the attribute that ``path`` (``module:attribute``) names.

    Args:
        path: in the form of entry points; extras in brackets are ignored.
        title: the beginning of the error message.

    Raises:
        UserError: the import raised, or the module has no such attribute.
    """
    module_name, colon, attribute = path.partition("[")[0].replace(" ", "").partition(":")
    try:
        target: Any = importlib.import_module(module_name)
        if module_name.partition(".")[0] != "coterie":
            _loaded.add(module_name)
        for part in filter(None, attribute.split(".")):
            target = getattr(target, part)
    except (Exception, SystemExit) as error:
        top = module_name.partition(".")[0]
        way = ""
        if not colon:
            way = " Is a colon missing? It is written module:attribute."
        elif isinstance(error, ModuleNotFoundError) and error.name == top:
            way = " Start with `coterie` in its folder, or name that folder in PYTHONPATH."
        raise UserError(f"{title} cannot be loaded: {cause_of(error)}.{way}") from error
    return target


_loaded: set[str] = set()
"""Modules outside of Coterie that :func:`load` has imported."""


def sources() -> dict[str, Path]:
    """Module -> its file, for every loaded plug-in and what it imports from its folder or package.

    Other installed packages are left out.
    """
    plugins = {name.partition(".")[0]: path for name in _loaded if (path := _file(name))}
    if not plugins:
        return {}
    # A plug-in that is not a package imports from its folder.
    folders = {
        path.parent
        for top, path in plugins.items()
        if not hasattr(sys.modules.get(top), "__path__")
    }
    found: dict[str, Path] = {}
    for name in list(sys.modules):
        top = name.partition(".")[0]
        if top in ("coterie", "__main__", "conftest") or (path := _file(name)) is None:
            continue
        in_folder = path.parent in folders and "site-packages" not in path.parts
        if (top in plugins or in_folder) and path.is_file():
            found[name] = path
    return found


def _file(module: str) -> Path | None:
    """The source file of an imported module; None if it has none."""
    file = getattr(sys.modules.get(module), "__file__", None)
    # Some libraries put other objects into sys.modules.
    if not isinstance(file, str) or not file.endswith(".py"):
        return None
    return _resolved(file)


@cache
def _resolved(file: str) -> Path:
    """The resolved path, cached because every run looks at thousands of modules."""
    return Path(file).resolve()


@lru_cache(maxsize=1)
def _registered(path: tuple[str, ...]) -> Any:
    """The entries of all groups on ``sys.path``, read from the disk once."""
    try:
        return entry_points()
    except Exception:
        # The library returns nothing at all if the file of any package is bad. A package may be
        # on the path twice.
        entries = (entry for each in distributions() for entry in _readable(each))
        return EntryPoints(dict.fromkeys(entries))


def _readable(distribution: Distribution) -> EntryPoints:
    try:
        return distribution.entry_points
    except Exception:
        return EntryPoints()
