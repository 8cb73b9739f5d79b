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

from coterie.datatypes.errors import UserError, did_you_mean


@dataclass(frozen=True)
class Plugins:
    """The registrations of installed packages in an entry-point group; nothing is loaded."""

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
        """The name of each package whose registrations cannot be read, and why, for messages."""
        return _registered(self.group, tuple(sys.path)).faults

    def find(self, name: str, known: Collection[str]) -> tuple[str, str]:
        """Where ``name`` is loaded from (``module:attribute``), and what messages begin with.

        Args:
            name: a registered name, or a path ``module:attribute``.
            known: the names that the message lists where ``name`` is neither.

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
        path: as entry points are written; extras in brackets are ignored.
        title: what the error message begins with.

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
        form = "" if colon else " Is a colon missing? It is written module:attribute."
        raise UserError(f"{title} cannot be loaded: {_cause(error)}.{form}") from error
    return target


_loaded: set[str] = set()
"""Modules that :func:`load` has imported, without Coterie's own."""


def sources() -> dict[str, Path]:
    """Module -> its file, of every plug-in so far and of what it imports from its own folder or
    package; what is installed elsewhere is left out."""
    own = {name.partition(".")[0]: file for name in _loaded if (file := _file(name)) is not None}
    # A plug-in that is no package imports what lies beside it.
    folders = {
        file.parent for top, file in own.items() if not hasattr(sys.modules.get(top), "__path__")
    }
    found: dict[str, Path] = {}
    for name in list(sys.modules):
        top = name.partition(".")[0]
        if top in ("coterie", "__main__", "conftest") or (path := _file(name)) is None:
            continue
        beside = path.parent in folders and "site-packages" not in path.parts
        if (top in own or beside) and path.is_file():
            found[name] = path
    return found


def _file(module: str) -> Path | None:
    """The source of an imported module; None where it has none."""
    file = getattr(sys.modules.get(module), "__file__", None)
    # Libraries put objects among the modules that name a file without having one.
    if not isinstance(file, str) or not file.endswith(".py"):
        return None
    return _resolved(file)


@cache
def _resolved(file: str) -> Path:
    """A file's own path; thousands of modules are looked at for every run."""
    return Path(file).resolve()


class _Registered(NamedTuple):
    """The registrations on a ``sys.path``."""

    entries: EntryPoints
    faults: tuple[str, ...]


@lru_cache(maxsize=4)
def _registered(group: str, path: tuple[str, ...]) -> _Registered:
    """The group's entries on ``sys.path``."""
    try:
        return _Registered(_of_all_groups(path).select(group=group), ())
    except Exception:
        # One bad file on the path, of any package, and the library gives nothing at all.
        return _package_by_package(group)


@lru_cache(maxsize=1)
def _of_all_groups(path: tuple[str, ...]) -> Any:
    """All entries on ``sys.path``, which is read from disk once; Python 3.11 has another class for
    those of all groups."""
    return entry_points()


def _package_by_package(group: str) -> _Registered:
    """The entries of every package whose file can be read, and what is wrong with the others."""
    entries: dict[str, list[EntryPoint]] = {}
    faults: dict[str, str] = {}
    for distribution in distributions():
        package = _package(distribution)
        if package in entries or package in faults:
            continue  # after another one of its name on the path
        try:
            entries[package] = list(distribution.entry_points.select(group=group))
        except Exception as error:
            text = _text(distribution)
            if text is None or group in text:
                why = _bad_line(text or "") or _cause(error)
                faults[package] = f"package {package}: its entry_points.txt cannot be read: {why}"
    return _Registered(
        EntryPoints(entry for of_package in entries.values() for entry in of_package),
        tuple(faults.values()),
    )


def _text(distribution: Distribution) -> str | None:
    """The file as it stands; None where it is no text."""
    try:
        return distribution.read_text("entry_points.txt")
    except (OSError, ValueError):
        return None


def _bad_line(text: str) -> str:
    """The first line that is neither a heading nor an entry; empty without any."""
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        heading = line.startswith("[") and line.endswith("]")
        if line and not line.startswith("#") and not heading and "=" not in line:
            return f"line {number} is {line!r:.80}, and should be NAME = module:attribute"
    return ""


def _package(distribution: Distribution) -> str:
    """Return the distribution's name, or that of its folder if its metadata are broken."""
    try:
        name = distribution.metadata["Name"]
    except Exception:
        name = None
    return name or Path(str(getattr(distribution, "_path", "without a name"))).name


def _cause(error: BaseException) -> str:
    """An exception's type and message, on one line of at most 300 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split()):.300}".removesuffix(": ")
