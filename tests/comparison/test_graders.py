"""Free text in a comparison: graded by a judge as in training, or refused with the way out."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark

SUITE = ("--policies", "a=scripted:oracle", "--suite", "math", "--samples", "1")


@pytest.mark.parametrize("kind", ["judged", "code"])
def test_what_nobody_grades_is_refused(
    tmp_path: Path, graded_files: dict[str, str], kind: str, capsys: Any
) -> None:
    out = str(tmp_path / "out")
    assert benchmark.main([*SUITE, "--problems", graded_files[kind], "--out", out]) == 2
    said = capsys.readouterr().err
    assert f"of kind {kind}" in said
    assert {"judged": "--scoring.judge", "code": "--scoring.programs"}[kind] in said


def test_a_judge_grades_free_text(tmp_path: Path, graded_files: dict[str, str]) -> None:
    # It calls everything correct.
    judge = ("--scoring.judge", "scripted:useless?useless_text=A")
    flags = ("--problems", graded_files["judged"], *judge, "--resamples", "10")
    assert benchmark.main([*SUITE, *flags, "--out", str(tmp_path / "out")]) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["suites"]["math"]["rows"]["a"]["avg"]["value"] == 1.0
