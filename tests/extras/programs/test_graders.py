"""Programs that models write, graded by their tests in comparisons and in training."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.training.config.preflight import preflight


def test_a_grader_that_nobody_needs_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "no problem here is of kind code"
    assert benchmark.main(["corea", "--scoring.programs", "--questions", "2"]) == 2
    assert f"{sentence}; leave out --scoring.programs" in capsys.readouterr().err
    with pytest.raises(UserError, match=sentence):
        preflight(parse(["--scoring.programs"]))


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")
def test_a_comparison_runs_programs(tmp_path: Path, graded_files: dict[str, str]) -> None:
    programs = ("--problems", graded_files["code"], "--scoring.programs")
    few = ("--samples", "1", "--resamples", "10", "--out", str(tmp_path))
    flags = ("--scoring.program-deadline-s", "5", "--max-new-tokens", "300")
    # A script that writes the six functions, and one that writes nothing of use.
    right = "%0A".join(f"def add{n}(x): return x + {n}" for n in range(6))
    good = f"good=scripted:useless?useless_text=```python%0A{right}%0A```"
    who = ("--policies", good, "bad=scripted:useless", "--suite", "math")
    assert benchmark.main([*who, *programs, *few, *flags]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    rows = results["suites"]["math"]["rows"]
    assert [rows[name]["avg"]["value"] for name in ("good", "bad")] == [1.0, 0.0]


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")
def test_a_run_that_programs_decide(
    opened: Callable[..., Any], graded_files: dict[str, str]
) -> None:
    session = opened(
        *("--env", "sd-e2", "--problems.train", graded_files["code"], "--problems.held-out", "2"),
        *("--scoring.programs", "--steps", "1", "--rollout.problems-per-step", "2"),
    )
    # The tiny team writes no programs; that is wrong, and nothing more.
    rows = session.sample(1).rows
    assert [row.info["correct"] for row in rows if row.role == "alice"]
    assert not any(row.info["correct"] for row in rows)
