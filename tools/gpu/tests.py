"""Runs the tests that need a GPU; collects only their files, as collecting all takes a minute."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_PLACE = "GPU_TESTS_REPORT"
"""Environment variable: the file to which this module, as a plugin of pytest, adds a line of JSON
for each test, so that none is lost where time runs out."""


def measure(scratch: Path, seconds: float) -> dict[str, Any]:
    """Return how many tests passed, failed and were skipped, and why."""
    report = scratch / "tests.jsonl"
    report.write_text("", encoding="utf-8")
    files = [p for p in (ROOT / "tests").rglob("test_*.py") if "mark.gpu" in p.read_text("utf-8")]
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-n", "0", "-q", "-W", "default"]
    # One says so where processes are used, and a warning is an error; the other writes files.
    command += ["-p", "no:benchmark", "-p", "no:cacheprovider", "-p", "gpu.tests"]
    command += [str(path) for path in sorted(files)]
    own = {**os.environ, _PLACE: str(report)}
    why = ""
    try:
        code = subprocess.run(command, cwd=ROOT, env=own, check=False, timeout=seconds).returncode
        if code not in (0, 1):
            why = f"pytest ended with {code}"
    except subprocess.TimeoutExpired:
        why = f"pytest was ended after {seconds:.0f} s"
    outcomes = summary(report.read_text(encoding="utf-8").splitlines())
    if outcomes["failed"]:
        why = f"{len(outcomes['failed'])} failed" + (f"; {why}" if why else "")
    return outcomes | ({"error": why} if why else {})


def summary(lines: list[str]) -> dict[str, Any]:
    """Summarise the plugin's lines."""
    outcomes: dict[str, Any] = {"passed": 0, "failed": [], "skipped": {}}
    for report in map(json.loads, lines):
        if report["outcome"] == "passed":
            outcomes["passed"] += 1
        elif report["outcome"] == "skipped":
            outcomes["skipped"][report["why"]] = outcomes["skipped"].get(report["why"], 0) + 1
        else:
            outcomes["failed"].append({"test": report["test"], "why": report["why"]})
    return outcomes


def pytest_runtest_logreport(report: Any) -> None:
    """pytest's hook, once for each phase of a test."""
    if report.outcome == "passed" and report.when != "call":
        return
    why = ""
    if report.skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    elif report.failed:
        why = str(report.longreprtext)[-1500:]
    line = json.dumps({"test": report.nodeid, "outcome": report.outcome, "why": why})
    with open(os.environ[_PLACE], "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
