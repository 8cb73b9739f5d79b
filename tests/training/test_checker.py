"""A checker of one's own in whole runs: where it grades, resume, and what is refused."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coterie import train
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.training.config.preflight import preflight
from coterie.training.session import Session

Opened = Callable[..., Session]
Train = Callable[[Session], list[dict[str, float]]]

MODULE = """
def even(answer, problem):
    return len(answer) % 2 == 0

def half(answer, problem):
    return 0.5

def odd(answer, problem):
    return "yes"

def picky(answer, problem):
    if answer not in (problem.gold, "I am not sure."):
        raise LookupError("unheard of")
    return True
"""
GRADING = ("solo", "core-teaching", "sd-e2", "corea-deferral", "eapo-consultation")


@pytest.fixture(autouse=True)
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's own."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "house_rules.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])


@pytest.mark.parametrize("env", GRADING)
def test_it_grades_in_every_environment(opened: Opened, train: Train, env: str) -> None:
    own = opened("--env", env, "--scoring.checker", "house_rules:even", "--steps", "1")
    (step,) = train(own)
    stats = own.runtime.scorer.stats()
    assert stats["checks/checker"] > 0
    assert {name for name in stats if name.startswith("checks/")} <= {
        "checks/checker",
        "checks/none",
    }
    assert step


def test_a_part_of_the_credit_is_the_reward(opened: Opened, train: Train) -> None:
    flags = ("--scoring.checker", "house_rules:half", "--steps", "1")
    solo = opened("--env", "solo", *flags)
    (step,) = train(solo)
    # An empty answer is not shown to it, and earns nothing.
    assert step["reward/solver"] <= 0.5
    assert step["reward/solver"] > 0.25
    assert step["measured/solver/correct"] == 0.0


def test_math_verify_grades_a_run(opened: Opened, train: Train) -> None:
    session = opened("--env", "solo", "--scoring.checker", "math-verify", "--steps", "1")
    train(session)
    assert session.runtime.scorer.stats()["checks/math-verify"] > 0


def test_a_run_goes_on_where_it_fails(
    opened: Opened, train: Train, capfd: pytest.CaptureFixture[str]
) -> None:
    session = opened("--env", "solo", "--scoring.checker", "house_rules:picky", "--steps", "1")
    (step,) = train(session)
    assert step["measured/solver/correct"] == 0.0
    said = capfd.readouterr().err
    assert "--scoring.checker house_rules:picky raised LookupError: unheard of on an answer" in said


def test_a_run_keeps_its_checker(tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = ("--env", "solo", "--scoring.checker", "house_rules:even", "--steps", "1")
    small = ("--rollout.problems-per-step", "2", "--problems.held-out", "2", "--threads", "1")
    assert train.main([*flags, *small, "--run-dir", str(run)]) == 0
    assert json.loads((run / "config.json").read_text())["scoring"]["checker"] == "house_rules:even"
    resumed = parse(["--resume", str(run), "--steps", "2"])
    assert resumed.scoring.checker == "house_rules:even"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("house_rules:odd", "gave 'yes' on the answer"),
        ("house_rules:none", "has no attribute 'none'"),
        ("no_such_rules:f", "No module named 'no_such_rules'"),
        ("mathverify", "it must be default, math-verify or a function of yours"),
    ],
)
def test_what_cannot_work_is_refused_before_a_model_is_loaded(
    tmp_path: Path, name: str, why: str
) -> None:
    with pytest.raises(UserError) as caught:
        preflight(parse(["--run-dir", str(tmp_path / "run"), "--scoring.checker", name]))
    assert why in str(caught.value)
    assert str(caught.value).startswith("--scoring.checker")


def test_it_takes_the_place_of_judge_and_programs(
    graded_files: dict[str, str], tmp_path: Path
) -> None:
    run = ("--run-dir", str(tmp_path / "run"), "--problems.held-out", "2")
    own = ("--scoring.checker", "house_rules:even")
    for kind in ("code", "judged"):
        preflight(parse([*run, "--problems.train", graded_files[kind], *own]))
    judge = ("--problems.train", graded_files["judged"], "--scoring.judge", "tiny:alice")
    with pytest.raises(
        UserError, match=r"judges problems of every kind; leave out --scoring.judge"
    ):
        preflight(parse([*run, *judge, *own]))
    # math-verify does not.
    with pytest.raises(UserError, match=r"--scoring.judge"):
        preflight(parse([*run, *judge[:2], "--scoring.checker", "math-verify"]))
