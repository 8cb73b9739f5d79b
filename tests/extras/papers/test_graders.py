"""Programs and free text in the papers' comparisons: graded, or refused with the way out."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark

COMPARISONS = {
    "corea": ("corea", "--systems", "slm", "llm", "--samples", "1"),
    "eapo": ("eapo", "--no-peers", "--no-noise", "--samples", "1"),
}


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("kind", ["judged", "code"])
def test_what_nobody_grades_is_refused(
    graded_files: dict[str, str], comparison: str, kind: str, capsys: Any
) -> None:
    assert benchmark.main([*COMPARISONS[comparison], "--problems", graded_files[kind]]) == 2
    said = capsys.readouterr().err
    assert f"of kind {kind}" in said
    assert {"judged": "--scoring.judge", "code": "--scoring.programs"}[kind] in said


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_a_judge_grades_free_text(
    tmp_path: Path, graded_files: dict[str, str], comparison: str
) -> None:
    # It calls everything correct.
    judge = ("--scoring.judge", "scripted:useless?useless_text=A", "--resamples", "10")
    flags = ("--problems", graded_files["judged"], *judge, "--out", str(tmp_path))
    assert benchmark.main([*COMPARISONS[comparison], *flags]) == 0
    systems = json.loads((tmp_path / "results.json").read_text())["systems"]
    if comparison == "corea":
        assert systems["slm"]["accuracy"]["value"] == 1.0
    else:
        assert systems["base"]["avg@n"]["value"] > 0
