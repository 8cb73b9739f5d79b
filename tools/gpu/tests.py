"""Tests that need a GPU, and only the files that have some: collecting all takes a minute."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import torch

ROOT = Path(__file__).resolve().parents[2]


def measure(scratch: Path) -> dict[str, Any]:
    """How many passed, failed and were skipped, and why."""
    report = scratch / "tests.xml"
    files = [p for p in (ROOT / "tests").rglob("test_*.py") if "mark.gpu" in p.read_text("utf-8")]
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-n", "0", "-q", "-W", "default"]
    # It says so where processes are used, and every warning is an error.
    command += ["-p", "no:benchmark", "-p", "no:cacheprovider", f"--junit-xml={report}"]
    done = subprocess.run([*command, *map(str, sorted(files))], cwd=ROOT, check=False)
    if not report.is_file():
        raise RuntimeError(f"pytest ended with {done.returncode} and no report")
    found: dict[str, Any] = {"passed": 0, "failed": [], "skipped": {}}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        outcome = next((one for one in case if one.tag in ("failure", "error", "skipped")), None)
        if outcome is None:
            found["passed"] += 1
        elif outcome.tag == "skipped":
            why = outcome.get("message", "")
            found["skipped"][why] = found["skipped"].get(why, 0) + 1
        else:
            found["failed"].append({"test": name, "why": (outcome.get("message") or "")[:600]})
    if found["failed"] and torch.cuda.is_available():
        found["error"] = f"{len(found['failed'])} tests failed"
    return found
