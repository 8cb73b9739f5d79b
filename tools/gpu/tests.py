"""Run the tests that need a GPU; collect only their files, as collecting all takes a minute."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 140.0
"""Less than the part's limit, so that the outcomes are read."""
_REPORT = "GPU_TESTS_REPORT"
"""Environment variable: the file to which this module, as a plugin of pytest, adds a line of JSON
for each test, so that none is lost where time runs out."""


def measure(scratch: Path) -> dict[str, Any]:
    """Return how many tests passed, failed and were skipped, and why."""
    report = scratch / "tests.jsonl"
    report.write_text("", encoding="utf-8")
    files = [p for p in (ROOT / "tests").rglob("test_*.py") if "mark.gpu" in p.read_text("utf-8")]
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-n", "0", "-q", "-W", "default"]
    # pytest-benchmark warns where processes are used, and a warning is an error.
    command += ["-p", "no:benchmark", "-p", "no:cacheprovider", "-p", "gpu.tests"]
    command += [str(path) for path in sorted(files)]
    environment = {**os.environ, _REPORT: str(report)}
    why = []
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=SECONDS)
        if done.returncode not in (0, 1):
            why.append(f"pytest ended with {done.returncode}")
    except subprocess.TimeoutExpired:
        why.append(f"pytest was ended after {SECONDS:.0f} s")
    outcomes: dict[str, Any] = {"passed": 0, "failed": [], "skipped": {}}
    for test in map(json.loads, report.read_text(encoding="utf-8").splitlines()):
        if test["outcome"] == "passed":
            outcomes["passed"] += 1
        elif test["outcome"] == "skipped":
            outcomes["skipped"][test["why"]] = outcomes["skipped"].get(test["why"], 0) + 1
        else:
            outcomes["failed"].append({"test": test["test"], "why": test["why"]})
    if outcomes["failed"]:
        why.insert(0, f"{len(outcomes['failed'])} failed")
    return outcomes | ({"error": "; ".join(why)} if why else {})


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
    with open(os.environ[_REPORT], "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
