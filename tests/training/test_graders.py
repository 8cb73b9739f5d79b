"""Graders from the command line: refused where nobody can grade, and whole runs where one can."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.training.config.preflight import preflight
from coterie.training.session import Session


def refused(tmp_path: Path, *flags: str) -> str:
    with pytest.raises(UserError) as caught:
        preflight(parse(["--run-dir", str(tmp_path / "run"), *flags]))
    return str(caught.value)


def test_problems_that_nobody_can_grade_are_refused(
    graded_files: dict[str, str], tmp_path: Path
) -> None:
    for kind, flag in (("code", "--scoring.programs"), ("judged", "--scoring.judge")):
        flags = ("--problems.held-out", "2")
        assert flag in refused(tmp_path, "--problems.train", graded_files[kind], *flags)
        # In evaluation alone, too.
        assert f"of kind {kind}" in refused(tmp_path, "--problems.eval", graded_files[kind], *flags)


def test_a_judge_that_nobody_needs_is_refused(tmp_path: Path) -> None:
    flags = ("--scoring.judge", "tiny:alice")
    assert "no problem here is of kind judged" in refused(tmp_path, *flags)


def test_judges_are_checked_first(graded_files: dict[str, str], tmp_path: Path) -> None:
    judged = ("--problems.train", graded_files["judged"], "--problems.held-out", "2")
    judge = ("--scoring.judge", "scripted:useless?colour=red")
    assert "no option" in refused(tmp_path, *judged, *judge)


Opened = Callable[..., Session]
Train = Callable[[Session], list[dict[str, float]]]


def test_a_run_that_a_judge_grades(
    opened: Opened, train: Train, graded_files: dict[str, str]
) -> None:
    session = opened(
        *("--env", "sd-e2", "--problems.train", graded_files["judged"], "--problems.held-out", "2"),
        *("--scoring.judge", "scripted:useless?useless_text=A", "--steps", "1"),
    )
    assert train(session)[0]["measured/alice/correct"] == 1.0
    assert session.runtime.scorer.stats()["checks/judge"] > 0
