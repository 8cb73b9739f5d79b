"""Programs and free text in comparisons: graded as in training, or refused with the way out."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.datatypes.arguments import overlay

COMPARISONS = {
    "suite": ("--policies", "a=scripted:oracle", "--suite", "math"),
    "corea": ("corea", "--systems", "slm", "llm"),
    "eapo": ("eapo", "--no-peers", "--no-noise"),
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Problems in the formats of SimpleQA and of HumanEval."""
    rows = {
        "judged": [
            {"problem": f"Which number follows {n}?", "answer": str(n + 1), "metadata": "{}"}
            for n in range(3)
        ],
        "code": [
            {
                "prompt": f"def add{n}(x):\n    '''x + {n}'''\n",
                "canonical_solution": f"    return x + {n}\n",
                "entry_point": f"add{n}",
                "test": f"def check(candidate):\n    assert candidate(1) == {n + 1}\n",
            }
            for n in range(3)
        ],
    }
    for kind, problems in rows.items():
        (tmp_path / f"{kind}.jsonl").write_text("\n".join(map(json.dumps, problems)))
    return {kind: str(tmp_path / f"{kind}.jsonl") for kind in rows}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def command(comparison: str, *flags: str, code: int = 0) -> Any:
        few = ("--samples", "1", "--resamples", "10", "--out", str(tmp_path / comparison))
        assert benchmark.main(overlay([*COMPARISONS[comparison], *few, *flags])) == code
        path = tmp_path / comparison / "results.json"
        return json.loads(path.read_text()) if path.is_file() else None

    return command


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize(
    ("kind", "flag"), [("judged", "--scoring.judge"), ("code", "--scoring.programs")]
)
def test_what_nobody_grades_is_refused(
    run: Any, files: dict[str, str], comparison: str, kind: str, flag: str, capsys: Any
) -> None:
    run(comparison, "--problems", files[kind], code=2)
    said = capsys.readouterr().err
    assert f"of kind {kind}" in said
    assert flag in said


def test_a_grader_that_nobody_needs_is_refused(run: Any, capsys: Any) -> None:
    run("corea", "--scoring.programs", "--questions", "2", code=2)
    assert (
        "no problem here is of kind code; leave out --scoring.programs" in capsys.readouterr().err
    )


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_a_judge_grades_free_text(run: Any, files: dict[str, str], comparison: str) -> None:
    judge = ("--scoring.judge", "scripted:useless?useless_text=A")
    results = run(comparison, "--problems", files["judged"], *judge)
    # It calls everything correct.
    if comparison == "suite":
        assert results["suites"]["math"]["rows"]["a"]["avg"]["value"] == 1.0
    elif comparison == "corea":
        assert results["systems"]["slm"]["accuracy"]["value"] == 1.0
    else:
        assert results["systems"]["base"]["avg@n"]["value"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")
def test_programs_are_run(run: Any, files: dict[str, str]) -> None:
    programs = ("--problems", files["code"], "--scoring.programs")
    flags = ("--scoring.program-deadline-s", "5", "--max-new-tokens", "200")
    # A script that writes the three functions, and one that writes nothing of use.
    right = "\n".join(f"def add{n}(x): return x + {n}" for n in range(3)).replace("\n", "%0A")
    who = (
        "--policies",
        f"good=scripted:useless?useless_text=```python%0A{right}%0A```",
        "bad=scripted:useless",
    )
    rows = run("suite", *programs, *flags, *who)["suites"]["math"]["rows"]
    assert rows["good"]["avg"]["value"] == 1.0
    assert rows["bad"]["avg"]["value"] == 0.0
