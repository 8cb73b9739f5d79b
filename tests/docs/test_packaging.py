"""Containers and citation agree with the project."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_a_container_runs_what_the_project_installs(path: Path) -> None:
    text = path.read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    assert {step for step, _ in steps} <= {
        "FROM", "ENV", "WORKDIR", "RUN", "COPY", "ARG", "USER", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert steps[0][0] == "FROM"
    python = re.match(r"python:(3\.\d+)-slim$", steps[0][1])
    assert python
    assert tuple(map(int, python[1].split("."))) >= (3, 11)
    (program,) = re.findall(r'ENTRYPOINT \["(\w+)"\]', text)
    assert program in PROJECT["scripts"]
    # Not root, and the only folder that is written to is the user's; any other user has a home.
    assert ["USER", "1000"] in steps
    assert ["ENV", "HOME=/tmp"] in steps
    for torch in re.findall(r'pip install "(torch[^"]*)"', text):
        assert torch in PROJECT["dependencies"]


def test_nothing_that_is_installed_stays_outside_a_container() -> None:
    left_out = set((ROOT / ".dockerignore").read_text().split())
    rooms = {path.name for path in (ROOT / "coterie").iterdir() if path.is_symlink()}
    assert not left_out & {*rooms, "coterie", "pyproject.toml", *PROJECT["license-files"]}
    assert PROJECT["readme"] not in left_out


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    required = {"cff-version", "message", "title", "authors"}  # of its schema, 1.2.0
    assert required <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"] == PROJECT["description"]
