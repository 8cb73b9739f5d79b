"""Fetches the wheels that a machine without an index lacks, on a machine that has one.

The list of the target's packages is its ``pip freeze``, or names alone. A listed package is used
as it is, unless its version does not fit. Each other package is fetched by itself, for the target's
Python and platform, and its requirements are read from its metadata.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.parser import Parser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from coterie.datatypes import UserError

ROOT = Path(__file__).resolve().parents[2]
MIB = 2**20
NOT_OF_TESTS = frozenset(("import-linter", "ipykernel", "nbclient", "pyright", "ruff", "torchrl"))
"""Packages of the extra ``test`` that neither GPU tests nor the comparison with TRL need."""
_PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in (39, 35, 34, 31, 28, 27, 24, 17))
_PLATFORMS += ("manylinux2014_x86_64", "manylinux1_x86_64", "linux_x86_64")
Fetch = Callable[[Requirement, Path], Path | None]
"""A requirement and a folder -> its wheel there; None if it is not available."""


@dataclass(frozen=True)
class Target:
    """The target machine of the wheels; Linux on x86-64."""

    python: str = "3.12"
    has: Mapping[str, str | None] = field(default_factory=dict)
    """Package -> version; None if the list does not give one."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment for markers of requirements."""
        return {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "platform_machine": "x86_64",
            "platform_system": "Linux",
            "sys_platform": "linux",
            "os_name": "posix",
            "extra": "",
        }

    def lacks(self, wanted: Requirement) -> bool:
        """Return whether a package is missing, or its version does not fit."""
        name = canonicalize_name(wanted.name)
        if name not in self.has:
            return True
        version = self.has[name]
        return version is not None and not wanted.specifier.contains(version, prereleases=True)


@dataclass
class Gathered:
    """The result of gathering."""

    wheels: dict[str, Path] = field(default_factory=dict)
    """By package."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Package -> reason."""


def installed(lines: Iterable[str]) -> dict[str, str | None]:
    """Package -> version, of the lines of ``pip freeze`` or ``pip list``, or of names.

    Raises:
        UserError: a line is neither.
    """
    versions: dict[str, str | None] = {}
    for line in lines:
        text = line.partition("#")[0].strip()
        if not text or text.startswith(("-", "Package ")):
            continue
        match = re.fullmatch(r"([\w.-]+)(?:(?:==|\s+)([^\s@]+).*|\s*@.*)?", text)
        if match is None:
            raise UserError(f"{text!r} is no line of pip freeze and no name of a package")
        version = match[2]
        try:
            versions[canonicalize_name(match[1])] = version and str(Version(version))
        except InvalidVersion as error:
            raise UserError(f"{text!r} names no version of a package") from error
    return versions


def wanted() -> list[Requirement]:
    """Return the project's requirements for GPU tests and the comparison with TRL."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tests = map(Requirement, project["optional-dependencies"]["test"])
    needed = [
        requirement
        for requirement in tests
        if canonicalize_name(requirement.name) not in NOT_OF_TESTS
    ]
    return [*map(Requirement, project["dependencies"]), *needed]


def gather(target: Target, folder: Path, most: float, fetch: Fetch) -> Gathered:
    """Fetch into ``folder`` what ``target`` lacks; wheels above ``most`` MiB are left out.

    Raises:
        UserError: two packages want versions of a third that exclude each other.
    """
    gathered, waiting = Gathered(), list(_deep(wanted(), target))
    versions: dict[str, str] = {}
    while waiting:
        requirement = waiting.pop(0)
        name = canonicalize_name(requirement.name)
        if name in gathered.left_out or not target.lacks(requirement):
            continue
        if name in versions:
            if not requirement.specifier.contains(versions[name], prereleases=True):
                raise UserError(
                    f"{name} {versions[name]} was taken, and something needs {requirement}"
                )
            continue
        wheel = fetch(requirement, folder)
        if wheel is None:
            gathered.left_out[name] = (
                f"no wheel of {requirement} for Python {target.python} can be had"
            )
            continue
        size = wheel.stat().st_size / MIB
        if size > most:
            wheel.unlink()
            gathered.left_out[name] = f"its wheel has {size:.0f} MiB"
            continue
        metadata = _metadata(wheel)
        versions[name], gathered.wheels[name] = metadata["Version"], wheel
        needs = [Requirement(text) for text in metadata.get_all("Requires-Dist") or ()]
        waiting += _deep(needs, target, extras=requirement.extras)
    return gathered


def _deep(
    needs: Iterable[Requirement], target: Target, extras: Iterable[str] = ()
) -> Iterator[Requirement]:
    """Yield the requirements that hold on the target, for a package with or without ``extras``."""
    environments = [target.environment | {"extra": extra} for extra in ("", *extras)]
    for requirement in needs:
        if requirement.marker is None or any(
            requirement.marker.evaluate(each) for each in environments
        ):
            yield requirement


def _metadata(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def fetcher(python: str) -> Fetch:
    """Fetches one wheel by pip, for that Python on Linux; makes it where an index has the source
    of a package in plain Python alone."""
    plainly = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    there = ["--only-binary=:all:", "--python-version", python, "--implementation", "cp"]
    there += [word for platform in _PLATFORMS for word in ("--platform", platform)]

    def fetch(requirement: Requirement, folder: Path) -> Path | None:
        wanted = f"{requirement.name}{requirement.specifier}"
        for verb, options in (("download", there), ("wheel", [])):
            with tempfile.TemporaryDirectory(dir=folder) as place:
                where = "--dest" if verb == "download" else "--wheel-dir"
                command = [*plainly, verb, "--no-deps", *options, where, place, wanted]
                subprocess.run(command, capture_output=True, check=False)
                made = list(Path(place).glob("*.whl"))
                if made and (verb == "download" or made[0].stem.endswith("-none-any")):
                    return made[0].replace(folder / made[0].name)
        return None

    return fetch


def command(options: Sequence[str] | None, to: Path, python: str, most: float) -> Gathered:
    """Gather for a machine that has what the file or the names in ``options`` say.

    Raises:
        UserError: the list cannot be read.
    """
    lines: list[str] = []
    for word in options or ():
        path = Path(word)
        lines += path.read_text(encoding="utf-8").splitlines() if path.is_file() else [word]
    to.mkdir(parents=True, exist_ok=True)
    for old in to.glob("*.whl"):
        old.unlink()  # two versions of a package stop the whole installation
    try:
        return gather(Target(python, installed(lines)), to, most, fetcher(python))
    except InvalidRequirement as error:
        raise UserError(f"a package needs what cannot be read: {error}") from error
