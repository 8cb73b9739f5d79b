"""The doctor's line on the checker of answers."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from coterie.agents.team.graders import build_scorer
from coterie.agents.team.settings import ScoringSettings
from coterie.datatypes import Problem
from coterie.extras.ops.doctor.finding import Finding
from coterie.extras.ops.doctor.grading import check_checker

PROBLEMS = [Problem(f"p{i}", f"What is {i} + 4?", str(i + 4), "number") for i in range(3)]
RULES = """
def ends(answer, problem):
    return answer.split()[-1] == problem.gold

def boxes(answer, problem):
    return answer == f"\\\\boxed{{{problem.gold}}}"

def half(answer, problem):
    return problem.gold in answer and 0.5

def pays(answer, problem):
    return True

def refuses(answer, problem):
    return False
"""


@pytest.fixture(autouse=True)
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "doctors_rules.py").write_text(RULES)
    monkeypatch.syspath_prepend(str(tmp_path))


def checked(problems: Sequence[Problem], checker: str = "default") -> Finding:
    settings = ScoringSettings(checker=checker)
    scorer = build_scorer(settings)
    try:
        return check_checker(scorer, settings, problems)
    finally:
        scorer.close()


@pytest.mark.parametrize(
    ("checker", "verdict", "measured"),
    [
        ("default", "ok", "default: right for the reference answer '4', wrong for a wrong one"),
        ("math-verify", "ok", "right for the reference answer '4', wrong for a wrong one"),
        ("doctors_rules:ends", "ok", "right for the reference answer '4', wrong for a wrong one"),
        ("doctors_rules:boxes", "ok", "right for the reference answer '4'"),
        ("doctors_rules:half", "differs", "0.5 for the reference answer '4', wrong for a wrong"),
        ("doctors_rules:pays", "wrong", "right for a wrong one"),
        ("doctors_rules:refuses", "wrong", "wrong for the reference answer '4'"),
    ],
)
def test_a_right_and_a_wrong_answer_are_graded(checker: str, verdict: str, measured: str) -> None:
    finding = checked(PROBLEMS, checker)
    assert finding.verdict == verdict
    assert measured in finding.measured
    assert f"--scoring.checker {checker}" in finding.measured
    assert bool(finding.way_out) == (verdict == "wrong")


def test_a_wrong_answer_is_no_other_form_of_the_right_one() -> None:
    problems = [Problem("a", "A half?", "0.5", "number"), Problem("b", "And?", "1/2", "number")]
    assert checked(problems).verdict == "ok"


def test_problems_whose_answers_are_not_compared_measure_nothing() -> None:
    judged = [Problem("j", "Why?", "Because.", "judged")]
    assert checked(judged).verdict == "not measured"
    assert checked(judged, "doctors_rules:ends").verdict == "ok"
