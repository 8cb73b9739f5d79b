"""The examples as their readers have them: from the repository's root, and as a package installed
beside us."""

import tomllib
from pathlib import Path

import pytest

from coterie.datatypes import Problem

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
THIRD_PARTY = EXAMPLES / "third_party"


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES.parent))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``pip install examples/third_party``, without pip: its module, and what its project says."""
    project = tomllib.loads((THIRD_PARTY / "pyproject.toml").read_text())["project"]
    info = tmp_path / "site" / "nim_in_words-0.1.0.dist-info"
    info.mkdir(parents=True)
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(about)
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
    monkeypatch.syspath_prepend(str(THIRD_PARTY))
    monkeypatch.syspath_prepend(str(info.parent))


@pytest.fixture
def problem() -> Problem:
    return Problem(id="q", question="7 + 8 - 3 =", gold="2", kind="number")
