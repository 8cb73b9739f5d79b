"""The core without any extra: a copy of the tree whose folder ``extras/`` is gone.

A test runs a sample of the core's tests there, for a minute. All of them take as long as ever:
``COTERIE_CORE_TESTS="tests/envs tests/training" pytest -n 0 -m slow tests/test_core_alone.py`` runs
the rooms that it names.
"""

import ast
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = ("extras/", "tests/extras/")
# Rooms that are about extras too: the documents, what checks and measures, and real engines.
OF_ALL = {"docs", "examples", "extras", "real", "research", "tools", "vllm"}
# Small rooms whole, and of the others what takes no more than some seconds.
SAMPLE = os.environ.get("COTERIE_CORE_TESTS", "").split() or [
    *(
        "tests/test_house.py",
        "tests/test_import_name.py",
        "tests/datatypes",
        "tests/cli",
        "tests/rollouts",
    ),
    *("tests/agents/test_policies.py", "tests/agents/team", "tests/envs/test_prompts.py"),
    *("tests/problems/test_stream.py", "tests/rewards/grading/test_judged.py"),
    "tests/cli/test_command_line.py",
    *("tests/training/test_resume.py", "tests/training/test_runtime.py"),
    *("tests/training/test_graders.py", "tests/training/test_refusals.py"),
    *("tests/evaluation/compare/test_flags.py", "tests/evaluation/compare/test_targets.py"),
]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that is tracked, but for the extras."""
    copy = tmp_path_factory.mktemp("core")
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    for name in filter(None, listed.stdout.split("\0")):
        place = copy / name
        if name.startswith(LEFT_OUT) or not os.path.lexists(ROOT / name):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place, follow_symlinks=False)
    assert not (copy / "extras").exists()
    return copy


@pytest.fixture(scope="module")
def run(core: Path, python) -> Callable[..., str]:
    """What a command says in the copy."""
    return lambda *command: python(*command, cwd=core, PYTHONPATH=str(core)).stdout


@pytest.mark.slow
def test_the_main_job_a_benchmark_and_the_report(core: Path, run) -> None:
    small = ("--steps", "2", "--rollout.problems-per-step", "4", "--problems.held-out", "8")
    said = run("train.py", *small, "--threads", "1", "--run-dir", "runs/a")
    assert "held out, cold" in said
    config = json.loads((core / "runs" / "a" / "config.json").read_text())
    assert "cluster" not in config
    run("train.py", "--resume", "runs/a", "--steps", "3")
    policies = ("--policies", "alice=runs/a", "bob=tiny:bob", "--suite", "core")
    run("benchmark.py", *policies, "--questions", "2", "--samples", "2", "--out", "runs/b")
    assert (core / "runs" / "b" / "results.json").is_file()
    run("-m", "coterie", "report", "runs/a")
    assert (core / "runs" / "a" / "report.html").is_file()


@pytest.mark.slow
def test_the_cores_tests(core: Path, run) -> None:
    """A sample of them."""
    options = ("-n", "0", "-q", "-p", "no:cacheprovider", f"--basetemp={core / 'tmp'}")
    run("-m", "pytest", *options, *SAMPLE)


def test_the_sample_is_there() -> None:
    assert [name for name in SAMPLE if not (ROOT / name).exists()] == []


def test_the_cores_tests_import_no_extra() -> None:
    naming: set[str] = set()
    for file in (ROOT / "tests").rglob("*.py"):
        if OF_ALL & {*file.relative_to(ROOT / "tests").parts}:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.startswith("coterie.extras") for name in names):
                naming.add(str(file.relative_to(ROOT)))
    assert naming == set()
