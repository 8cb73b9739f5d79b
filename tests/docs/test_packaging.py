"""Containers and citation agree with the project."""

import os
import re
import signal
import subprocess
import sys
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


def test_slurm_interrupts_the_run_itself(tmp_path: Path) -> None:
    """With stand-ins for the commands of a cluster."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").touch()
    answers = {"scontrol": "echo node1", "openssl": "echo 0", "sleep": ":"}
    answers["srun"] = 'while [ "${1#--}" != "$1" ]; do shift; done\n'
    answers["srun"] += 'if [ "$1" = python ]; then exec "$@"; fi\necho 10.0.0.1'
    answers["python"] = f'exec {sys.executable} {tmp_path / "run.py"} "$@"'
    for name, line in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "run.py").write_text(
        "import sys, time\n"
        "try:\n    print(sys.argv[1:], flush=True)\n    time.sleep(20)\n"
        "except KeyboardInterrupt:\n    print('saved')\n"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    where = {"PATH": path, "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_NUM_NODES": "2"}
    with subprocess.Popen(
        ["bash", ROOT / "docs/cluster/slurm.sh", "--steps", "3"],
        cwd=tmp_path, env=os.environ | where, stdout=subprocess.PIPE, text=True,
    ) as job:  # fmt: skip
        assert job.stdout is not None
        for line in job.stdout:
            if line.startswith("["):
                break
        job.send_signal(signal.SIGINT)
        assert line == "['train.py', '--cluster.address', '10.0.0.1:6379', '--steps', '3']\n"
        assert "saved\n" in job.stdout.read()


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
