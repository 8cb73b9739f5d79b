"""math-verify and checkers of one's own: what they are given, and what becomes of their faults."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coterie.datatypes import Problem, UserError, Verdict
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.checkers import MATHEMATICAL, ProcessChecker, check_name
from coterie.rewards.grading.scorer import AnswerScorer

MODULE = '''
import time

def shouting(answer, problem):
    """Right in capitals; half right where the letters are right."""
    if answer.strip() == problem.gold.upper():
        return True
    return 0.5 if answer.strip().upper() == problem.gold.upper() else False

def told(answer, problem):
    print("this is no reply")
    wanted = f"{answer}|{problem.kind}|{problem.choices}|{problem.meta['level']}"
    return wanted == "  two\\n|choice|('one', 'two')|3"

def moody(answer, problem):
    word = answer.strip()
    if word == "raise":
        raise ValueError("no such river")
    if word == "leave":
        raise SystemExit(0)
    if word == "die":
        import os
        os._exit(3)
    if word == "hang":
        time.sleep(600)
    bad = {"nan": float("nan"), "none": None, "two": 2, "text": "yes", "minus": -0.1}
    return bad.get(word, True)

def array(answer, problem):
    import numpy
    return numpy.float32(0.25) if answer == "a" else numpy.bool_(True)

def twins(answer, problem):
    import os
    if os.fork() == 0:
        time.sleep(0.05)
    return answer == problem.gold

NUMBER = 3
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ProcessChecker]]:
    """name of a function in a module of the user's -> its checker."""
    (tmp_path / "my_rules.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    made: list[ProcessChecker] = []

    def checker(name: str, **settings: float) -> ProcessChecker:
        made.append(ProcessChecker(f"my_rules:{name}", tell=said.append, **settings))  # type: ignore[arg-type]
        return made[-1]

    said: list[str] = []
    checker.said = said  # type: ignore[attr-defined]
    yield checker
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def math_verify() -> Iterator[ProcessChecker]:
    checker = ProcessChecker("math-verify", deadline_s=4.0)
    yield checker
    checker.close()


def test_a_number_is_credit_and_one_is_right(own: Callable[..., ProcessChecker]) -> None:
    problem = Problem("p", "Who?", "Ada", "text")
    verdicts = own("shouting")([(text, problem) for text in ("ADA", "ada", "Bob")])
    assert verdicts == [
        Verdict(True, "ADA", "checker"),
        Verdict(False, "ada", "checker", 0.5),
        Verdict(False, "Bob", "checker"),
    ]
    assert [verdict.credit for verdict in verdicts] == [1.0, 0.5, 0.0]


def test_a_function_gets_the_response_after_its_thinking_and_the_whole_problem(
    own: Callable[..., ProcessChecker],
) -> None:
    problem = Problem("p", "?", "B", "choice", ("one", "two"), meta={"level": 3})
    (verdict,) = own("told")([("<think>one?</think>  two\n", problem)])
    assert verdict.correct


def test_numbers_of_arrays_count(own: Callable[..., ProcessChecker]) -> None:
    verdicts = own("array")([(text, Problem("p", "?", "4")) for text in "ab"])
    assert [verdict.credit for verdict in verdicts] == [0.25, 1.0]


def test_a_child_that_a_checker_forks_answers_no_question(
    own: Callable[..., ProcessChecker],
) -> None:
    checker = own("twins", deadline_s=20.0)
    for texts in ("abab", "bab", "a", "bba"):
        verdicts = checker([(text, Problem("p", "?", "a", "text")) for text in texts])
        assert [verdict.correct for verdict in verdicts] == [text == "a" for text in texts]


def test_faults_are_wrong_answers_and_others_go_on(own: Callable[..., ProcessChecker]) -> None:
    checker = own("moody", deadline_s=1.5)
    words = ("raise", "fine", "nan", "none", "two", "text", "minus", "leave", "die", "fine too")
    problem = Problem("rivers:4", "?", "Aare", "text")
    verdicts = checker([(word, problem) for word in words])
    assert [v.correct for v in verdicts] == [word.startswith("fine") for word in words]
    assert {v.method for v in verdicts if not v.correct} == {"error"}
    assert checker.faults == {"error": 8}
    # Said once, and again at ten.
    assert own.said == [  # type: ignore[attr-defined]
        "--scoring.checker my_rules:moody raised ValueError: no such river on an answer to "
        "rivers:4: this answer counts as wrong"
    ]


def test_a_function_that_hangs_is_killed_with_what_it_started(
    own: Callable[..., ProcessChecker],
) -> None:
    checker = own("moody", deadline_s=1.5)
    problem = Problem("p", "?", "Aare", "text")
    start = time.monotonic()
    hung, after = checker([("hang", problem), ("fine", problem)])
    assert (hung.correct, hung.method, after.correct) == (False, "timeout", True)
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing", "cannot be loaded: AttributeError: module 'my_rules' has no attribute"),
        ("NUMBER", "is a int, and must be a function"),
        ("told", "raised KeyError: 'level' on the answer 'Aare' to rivers:4"),
    ],
)
def test_a_probe_refuses_what_cannot_work(
    own: Callable[..., ProcessChecker], name: str, why: str
) -> None:
    with pytest.raises(UserError) as caught:
        own(name).probe([Problem("rivers:4", "?", "Aare", "text")])
    assert str(caught.value).startswith(f"--scoring.checker my_rules:{name} {why}")
    assert "\n" not in str(caught.value)


def test_a_probe_refuses_a_function_that_hangs(own: Callable[..., ProcessChecker]) -> None:
    with pytest.raises(UserError, match="took longer than 1 s on the answer 'hang' to p"):
        own("moody", deadline_s=1.0).probe([Problem("p", "?", "hang", "text")])


@pytest.mark.parametrize("name", ["mathverify", ":f", "x:"])
def test_names_that_are_no_checker(name: str) -> None:
    with pytest.raises(UserError, match=r"must be default, math-verify or a function of yours"):
        check_name(name)


def test_a_scorer_asks_it_for_its_kinds_only(own: Callable[..., ProcessChecker]) -> None:
    scorer = AnswerScorer(graders={"text": own("shouting")})
    assert scorer.check("ada", Problem("p", "Who?", "Ada", "text")).credit == 0.5
    assert scorer.check("Answer: ada", Problem("p", "Who?", "Ada")).correct
    assert scorer.stats()["checks/checker"] == 1
    scorer.close()


def test_a_response_that_ends_with_its_thinking_is_not_shown(
    own: Callable[..., ProcessChecker],
) -> None:
    problem = Problem("p", "Who?", "Ada", "text")
    verdicts = own("array")([(text, problem) for text in ("<think>ADA", " \n", "x</think>")])
    assert verdicts == [Verdict(False, None, "none")] * 3


# What docs/answers.md shows side by side: (gold, answer, right for the default, for math-verify).
COMPARED = [
    ("64", r"2\cdot 32", False, True),
    ("4", r"\sqrt{16}", False, True),
    ("0.1", r"10\%", False, True),
    ("1024", "2^{10}", False, True),
    ("10", r"\binom{5}{2}", False, True),
    ("391", r"\frac{782}{2}", False, True),
    (r"\frac34", "0.75", True, True),
    ("(1,2)", "[1,2]", False, False),
    ("-3", "3", False, False),
]


def test_math_verify_pays_arithmetic_that_the_default_leaves_unpaid(
    math_verify: ProcessChecker,
) -> None:
    default = Checker()
    requests = [(rf"So it is \boxed{{{a}}}.", Problem("p", "?", g)) for g, a, *_ in COMPARED]
    assert [v.correct for v in default.check_many(requests)] == [row[2] for row in COMPARED]
    assert [v.correct for v in math_verify(requests)] == [row[3] for row in COMPARED]
    default.close()


def test_math_verify_reads_the_answer_by_its_own_rules(math_verify: ProcessChecker) -> None:
    problem = Problem("p", "?", "21", "number")
    said = [
        "They pay 21 euros a week.",
        "<think>21</think> It is 12.",
        "I cannot say.",
        "12, so 21",
    ]
    verdicts = math_verify([(text, problem) for text in said])
    assert [v.correct for v in verdicts] == [True, False, False, True]
    assert [v.answer for v in verdicts] == ["21", "12", None, "21"]
    assert [v.method for v in verdicts] == ["math-verify", "math-verify", "none", "math-verify"]
    lists = Problem("p", "?", "2, 3, 5", "list")
    assert math_verify([(r"\boxed{5, 3, 2}", lists)])[0].correct
    assert {"math", "number", "list"} == set(MATHEMATICAL)


@pytest.mark.slow
def test_what_makes_math_verify_swell_or_hang_costs_its_process_alone(
    math_verify: ProcessChecker,
) -> None:
    problem = Problem("p", "?", "6", "number")
    hostile = [r"\boxed{8^{8^{8^{8}}}}", r"\boxed{" + "(" * 4000 + "6" + ")" * 4000 + "}"]
    harmless = [r"\boxed{6}", "{" * 30_000 + r" \boxed{6}", "\ud83d \x00 \\boxed{6}"]
    verdicts = math_verify([(text, problem) for text in (*hostile, *harmless)])
    assert [v.correct for v in verdicts] == [False, False, True, True, True]
    assert {v.method for v in verdicts[:2]} <= {"timeout", "error", "math-verify"}
