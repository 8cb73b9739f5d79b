"""Fetch the wheels that a machine without a package index lacks, on a machine that has one.

pip cannot resolve for a machine that keeps packages of its own, such as a torch built for its
driver. Here each missing package is fetched by itself, and the requirements in its metadata are
followed. A package of the target is kept unless its version does not fit.
"""

import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

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
    """The machine that the wheels are for; Linux on x86-64."""

    python: str
    has: Mapping[str, str | None]
    """Package -> version; None if the list does not give one."""

    def lacks(self, wanted: Requirement) -> bool:
        """Return whether a package is missing, or its version does not fit."""
        name = canonicalize_name(wanted.name)
        if name not in self.has:
            return True
        version = self.has[name]
        return version is not None and not wanted.specifier.contains(version, prereleases=True)

    def needs(
        self, requirements: Iterable[Requirement], extras: Iterable[str] = ()
    ) -> list[Requirement]:
        """Return the requirements whose markers hold there, for a package with ``extras``."""
        machine = {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "platform_machine": "x86_64",
            "platform_system": "Linux",
            "sys_platform": "linux",
            "os_name": "posix",
        }
        environments = [{**machine, "extra": extra} for extra in ("", *extras)]
        return [
            requirement
            for requirement in requirements
            if requirement.marker is None or any(map(requirement.marker.evaluate, environments))
        ]


def installed(lines: Iterable[str]) -> dict[str, str | None]:
    """Return package -> version, of the lines of ``pip freeze`` or of names alone.

    Raises:
        UserError: a line is neither.
    """
    versions: dict[str, str | None] = {}
    for line in lines:
        text = line.partition("#")[0].strip()
        if not text or text.startswith("-"):
            continue
        try:
            package = Requirement(text)
        except InvalidRequirement as error:
            raise UserError(
                f"{text!r} is no line of pip freeze and no name of a package"
            ) from error
        exact = [bound.version for bound in package.specifier if bound.operator == "=="]
        if len(exact) != len(package.specifier):
            raise UserError(f"{text!r} is no line of pip freeze and no name of a package")
        versions[canonicalize_name(package.name)] = exact[0] if exact else None
    return versions


def wanted() -> list[Requirement]:
    """Return the project's requirements for GPU tests and the comparison with TRL."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tests = map(Requirement, project["optional-dependencies"]["test"])
    needed = [test for test in tests if canonicalize_name(test.name) not in NOT_OF_TESTS]
    return [*map(Requirement, project["dependencies"]), *needed]


def gather(
    target: Target, folder: Path, most: float, fetch: Fetch
) -> tuple[dict[str, Path], dict[str, str]]:
    """Fetch into ``folder`` what ``target`` lacks; leave out wheels above ``most`` MiB.

    Returns:
        Package -> wheel, and package -> why it was left out.

    Raises:
        UserError: two packages want versions of a third that exclude each other.
    """
    wheels: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    versions: dict[str, str] = {}
    waiting = target.needs(wanted())
    while waiting:
        requirement = waiting.pop(0)
        name = canonicalize_name(requirement.name)
        if name in left_out or not target.lacks(requirement):
            continue
        if name in versions:
            if not requirement.specifier.contains(versions[name], prereleases=True):
                raise UserError(
                    f"{name} {versions[name]} was taken, and something needs {requirement}"
                )
            continue
        wheel = fetch(requirement, folder)
        if wheel is None:
            left_out[name] = f"no wheel of {requirement} for Python {target.python} can be had"
            continue
        size = wheel.stat().st_size / MIB
        if size > most:
            wheel.unlink()
            left_out[name] = f"its wheel has {size:.0f} MiB"
            continue
        metadata = _metadata(wheel)
        versions[name], wheels[name] = metadata["Version"], wheel
        needs = map(Requirement, metadata.get_all("Requires-Dist") or ())
        waiting += target.needs(needs, requirement.extras)
    return wheels, left_out


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def fetcher(python: str) -> Fetch:
    """Return what fetches one wheel by pip, for that Python on Linux."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    download = ["download", "--only-binary=:all:", "--python-version", python]
    download += ["--implementation", "cp"]
    download += [word for platform in _PLATFORMS for word in ("--platform", platform)]

    def fetch(requirement: Requirement, folder: Path) -> Path | None:
        package = f"{requirement.name}{requirement.specifier}"
        # Where an index has the source alone, this machine builds the wheel; one of plain Python
        # fits the target, too.
        for command in ([*download, "--dest"], ["wheel", "--wheel-dir"]):
            with tempfile.TemporaryDirectory(dir=folder) as place:
                words = [*pip, *command, place, "--no-deps", package]
                subprocess.run(words, capture_output=True, check=False)
                made = list(Path(place).glob("*.whl"))
                if made and (command[0] == "download" or made[0].stem.endswith("-none-any")):
                    return made[0].replace(folder / made[0].name)
        return None

    return fetch


def run(freeze: Path, to: Path, python: str, most: float) -> int:
    """Gather for the machine whose ``pip freeze`` is in the file ``freeze``; print what came.

    Raises:
        UserError: the file cannot be read, or packages exclude each other.
    """
    try:
        has = installed(freeze.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--has {freeze} cannot be read: {error}") from error
    to.mkdir(parents=True, exist_ok=True)
    for old in to.glob("*.whl"):
        old.unlink()  # pip installs nothing where two versions of a package lie side by side
    try:
        wheels, left_out = gather(Target(python, has), to, most, fetcher(python))
    except InvalidRequirement as error:
        raise UserError(f"a package needs what cannot be read: {error}") from error
    total = sum(path.stat().st_size for path in wheels.values()) / MIB
    print(f"{len(wheels)} wheels, {total:.1f} MiB, in {to}")
    for name, why in sorted(left_out.items()):
        print(f"left out: {name}, {why}")
    return 0
