"""The question's own content is no answer to it, whatever does nothing is done to it."""

import re
import time

import pytest

from coterie.datatypes import Problem
from coterie.problems.chains import ChainSource
from coterie.problems.recall import RecallSource
from coterie.problems.source import ProblemSource
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.answers.canonical import arrangement, canonical, difference
from coterie.rewards.grading.answers.grammar import read


def form(text: str) -> object:
    formula = read(text)
    assert formula is not None
    return canonical(formula)[0]


@pytest.mark.parametrize(
    ("written", "same", "steps"),
    [
        ("x", "0+x/1", 2), (r"\sqrt{x}", "x^{1/2}", 0), (r"\frac{1}{x}", "x^{-1}", 0),
        (r"\frac{1}{\sqrt{x}}", "x^{-1/2}", 0), ("2^{-x}", r"\frac{1}{2^x}", 0),
        ("x-3", "-(3-x)", 0), ("(x-3)^2", "(3-x)^2", 0), ("(x-3)^3", "-(3-x)^3", 0),
        ("5x", "2x+3x", 1), ("y", r"\frac{x^2y}{x^2}", 1), (r"\frac{3x}{4}", r"\frac{6x}{8}", 1),
        ("(x+2)(x-3)", r"\frac{(x-3)(x+2)}{1}", 1), ("x^3-27", "x^3-3^3", 1),
        ("4x^2-9", "(2x)^2-3^2", 2),
    ],
)  # fmt: skip
def test_trivial_steps_are_taken_and_counted(written: str, same: str, steps: int) -> None:
    formula = read(same)
    assert formula is not None
    assert canonical(formula) == (form(written), steps)


@pytest.mark.parametrize(
    ("written", "worked"),
    [
        ("(x+2)(x-3)", "x^2-x-6"), (r"\sqrt{x^2}", "x"), (r"(\sqrt{x})^2", "x"), ("2^{10}", "4^5"),
        ("2^{10}+1", "1025"), ("x+2^{65}", "x+4^{32.5}"), ("x-3", "3-x"), ("(x-3)^3", "(3-x)^3"),
        (r"\sqrt{12}", r"2\sqrt3"), ("xy", "x+y"), ("x^2", "x^{-2}"),
    ],
)  # fmt: skip
def test_work_is_no_trivial_step(written: str, worked: str) -> None:
    assert form(written) != form(worked)


def equation(left: str, right: str) -> tuple[object, ...]:
    return ("equation", read(left), read(right))


def test_equations_are_one_up_to_a_number_and_their_order() -> None:
    single, double = equation("3x+y", "5"), equation("10", "2y+6x")
    solved = equation("y", "5-3x")
    assert difference(single) == difference(double) == difference(solved)
    assert arrangement(single) == arrangement(double) != arrangement(solved)
    assert difference(single) != difference(equation("3x+y", "6"))
    assert difference(equation("x", "x")) == ()


def test_a_hostile_question_or_answer_costs_little(checker: Checker) -> None:
    began = time.process_time()
    questions = [text * 4000 for text in ("((", "x/", "1+", "$$", "a ", "==")]
    questions += ["Factor it.", "Expand it.", "Simplify it.", "Write it in vertex form."]
    long = ("1+x+0", "x/" * 250 + "x", "x+" * 250 + "x", r"\sin" * 120 + "x", "(x+1)" * 100)
    for question in questions:
        for answer in (*long, "-(" * 8, "(" * 8 + "x+1" + ")^2" * 8):
            verdict = checker.check(rf"\boxed{{{answer}}}", Problem("p", question, "x(x+1)"))
            assert (verdict.correct, verdict.method == "timeout") == (False, False)
    assert time.process_time() - began < 4


@pytest.mark.parametrize("source", [ChainSource(), RecallSource()], ids=["chains", "recall"])
def test_a_generated_question_is_not_answered_by_itself(source: ProblemSource) -> None:
    checker = Checker()
    for index in range(200):
        asked = source[index]
        chain = asked.question.removesuffix("=").strip()
        digits = re.findall(r"\d", chain)
        for answer in (
            chain,
            chain.replace(" ", ""),
            f"{chain} = {int(asked.gold) + 1}",
            f"({chain})",
            f"{chain} + 0",
            f"0 + {chain}",
            f"{asked.gold} + 0",
            f"{asked.gold} * 1",
            f"{asked.gold}/1",
            " + ".join(reversed(digits)),
            " - ".join(digits),
        ):
            verdict = checker.check(rf"\boxed{{{answer}}}", asked)
            assert not verdict.correct, (asked, answer)
        assert checker.check(rf"\boxed{{{asked.gold}}}", asked).correct
    assert checker.pool.alive == 0
