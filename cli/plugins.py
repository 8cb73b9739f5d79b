"""Plug-ins by name: an attribute of a module, or a package's entry point."""

import importlib
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import (
    Distribution,
    EntryPoint,
    EntryPoints,
    distributions,
    entry_points,
)
from pathlib import Path
from typing import Any, NamedTuple

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
        entries = _registered(self.group, tuple(sys.path)).entries
        return list(entries if name is None else entries.select(name=name))

    def unreadable(self) -> tuple[str, ...]:
        """A clause for messages on each package whose registrations cannot be read."""
        return _registered(self.group, tuple(sys.path)).faults

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
        listed = f"unknown {self.kind} {name!r}; {ways} pkg.module:NAME"
        raise UserError("; ".join([listed, *self.unreadable()]) + ".")


def origin(entry: EntryPoint) -> str:
    """An entry point's value and package, for messages."""
    package = f" of package {_package(entry.dist)}" if entry.dist else ""
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


class _Registered(NamedTuple):
    """The registrations on a ``sys.path``."""

    entries: EntryPoints
    faults: tuple[str, ...]


@lru_cache(maxsize=4)
def _registered(group: str, path: tuple[str, ...]) -> _Registered:
    """The entries of ``group`` on ``sys.path``."""
    try:
        return _Registered(_of_all_groups(path).select(group=group), ())
    except Exception:
        # The library returns nothing at all if the file of any package is bad.
        return _package_by_package(group)


@lru_cache(maxsize=1)
def _of_all_groups(path: tuple[str, ...]) -> Any:
    """The entries of all groups on ``sys.path``, read from the disk once."""
    return entry_points()


def _package_by_package(group: str) -> _Registered:
    """The entries of every package whose file can be read, and the faults of the others."""
    entries: dict[str, list[EntryPoint]] = {}
    faults: dict[str, str] = {}
    for distribution in distributions():
        package = _package(distribution)
        if package in entries or package in faults:
            continue  # another package of this name comes first on the path
        try:
            entries[package] = list(distribution.entry_points.select(group=group))
        except Exception as error:
            text = _text(distribution)
            if text is None or group in text:
                why = _bad_line(text or "") or cause_of(error)
                faults[package] = f"package {package}: its entry_points.txt cannot be read: {why}"
    return _Registered(
        EntryPoints(entry for of_package in entries.values() for entry in of_package),
        tuple(faults.values()),
    )


def _text(distribution: Distribution) -> str | None:
    """The content of ``entry_points.txt``; None if it is not text."""
    try:
        return distribution.read_text("entry_points.txt")
    except (OSError, ValueError):
        return None


def _bad_line(text: str) -> str:
    """A clause on the first line that is neither a heading nor an entry; empty without any."""
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        heading = line.startswith("[") and line.endswith("]")
        if line and not line.startswith("#") and not heading and "=" not in line:
            return f"line {number} is {line!r:.80}, and should be NAME = module:attribute"
    return ""


def _package(distribution: Distribution) -> str:
    """The name of a distribution, or of its folder if its metadata are broken."""
    try:
        name = distribution.metadata["Name"]
    except Exception:
        name = None
    return name or Path(str(getattr(distribution, "_path", "without a name"))).name
