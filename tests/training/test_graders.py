"""Graders from the command line: refused where nobody can grade, and whole runs where one can."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coterie.datatypes import UserError
from coterie.teams.graders import Judge
from coterie.training.command_line import parse
from coterie.training.preflight import preflight
from coterie.training.session import Session


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Synthetic problem files by kind."""
    rows = {
        "judged": [
            {"problem": f"Which number follows {n}?", "answer": str(n + 1), "metadata": "{}"}
            for n in range(6)
        ],
        "code": [
            {
                "prompt": f"def add{n}(x):\n    '''x + {n}'''\n",
                "canonical_solution": f"    return x + {n}\n",
                "entry_point": f"add{n}",
                "test": f"def check(candidate):\n    assert candidate(1) == {n + 1}\n",
            }
            for n in range(6)
        ],
    }
    for kind, contents in rows.items():
        (tmp_path / f"{kind}.jsonl").write_text("\n".join(map(json.dumps, contents)))
    return {kind: str(tmp_path / f"{kind}.jsonl") for kind in rows}


def refused(tmp_path: Path, *flags: str) -> str:
    with pytest.raises(UserError) as caught:
        preflight(parse(["--run-dir", str(tmp_path / "run"), *flags]))
    return str(caught.value)


def test_problems_that_nobody_can_grade_are_refused(files: dict[str, str], tmp_path: Path) -> None:
    for kind, flag in (("code", "--scoring.programs"), ("judged", "--scoring.judge")):
        flags = ("--problems.held-out", "2")
        assert flag in refused(tmp_path, "--problems.train", files[kind], *flags)
        # In evaluation alone, too.
        assert f"of kind {kind}" in refused(tmp_path, "--problems.eval", files[kind], *flags)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--scoring.programs",), "no problem here is of kind code"),
        (("--scoring.judge", "tiny:alice"), "no problem here is of kind judged"),
    ],
)
def test_graders_that_nobody_needs_are_refused(
    flags: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    assert sentence in refused(tmp_path, *flags)


def test_judges_and_limits_are_checked_first(files: dict[str, str], tmp_path: Path) -> None:
    judged = ("--problems.train", files["judged"], "--problems.held-out", "2", "--scoring.judge")
    assert "no option" in refused(tmp_path, *judged, "scripted:useless?colour=red")
    assert "judge-max-new-tokens" in refused(
        tmp_path, *judged, "tiny:alice", "--scoring.judge-max-new-tokens", "0"
    )
    code = ("--problems.train", files["code"], "--problems.held-out", "2", "--scoring.programs")
    assert "64 MB" in refused(tmp_path, *code, "--scoring.program-memory-mb", "1")


Opened = Callable[..., Session]
Train = Callable[[Session], list[dict[str, float]]]


def test_a_run_that_a_judge_grades(opened: Opened, train: Train, files: dict[str, str]) -> None:
    session = opened(
        *("--env", "sd-e2", "--problems.train", files["judged"], "--problems.held-out", "2"),
        *("--scoring.judge", "scripted:useless?useless_text=A", "--steps", "1"),
    )
    assert train(session)[0]["measured/alice/correct"] == 1.0
    assert session.runtime.scorer.stats()["checks/judge"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")
def test_a_run_that_programs_decide(opened: Opened, train: Train, files: dict[str, str]) -> None:
    session = opened(
        *("--env", "sd-e2", "--problems.train", files["code"], "--problems.held-out", "2"),
        *("--scoring.programs", "--steps", "1", "--rollout.problems-per-step", "2"),
    )
    # The tiny team writes no programs; that is wrong, and nothing more.
    assert train(session)[0]["measured/alice/correct"] == 0.0


def test_a_local_model_judges_and_a_silent_one_grades_nothing() -> None:
    judge = Judge("tiny:alice", max_new_tokens=4)
    (reply,) = judge(["Question: 1 + 1 =\nLet's solve this step by step:"])
    assert isinstance(reply, str)
    judge.close()
    silent = Judge("scripted:silent", max_new_tokens=4)
    assert silent(["a", "b"]) == [None, None]
    silent.close()
