"""The question's own content is no answer to it, whatever does nothing is done to it."""

import time
from dataclasses import replace

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.answers.canonical import arrangement, canonical, difference
from coterie.rewards.grading.answers.grammar import read


@pytest.mark.parametrize(
    ("question", "gold", "answer"),
    [
        # The gold answer is of the question's form, and no other is asked for.
        ("Simplify $x+1$ if you can.", "x+1", "1+x"),
        (r"Is $2\sqrt3$ more than 3? Simplify $2\sqrt3$.", r"2\sqrt3", r"\sqrt3\cdot2"),
        (r"Which is it, $\frac{x}{2}$ or $x$?", r"\frac12 x", r"\frac{x}{2}"),
        ("Which line is parallel to $y=2x$: $y=2x+1$ or $y=x$?", "y=2x+1", "y=1+2x"),
        ("The line $y=2x$ moves up by 1. Which line is it?", "y=2x+1", "2x-y+1=0"),
        ("Write $x^2-9$ as a difference of two squares.", "x^2-3^2", "-3^2+x^2"),
        ("Which polynomial is $(2x+1)^2-4x$?", "4x^2+1", "(2x)^2+1"),
        ("Which line goes through (0, 1) with slope 2?", "y=2x+1", "2x-y+1=0"),
        ("Write the line in standard form, not in slope-intercept form.", "2x-y=-1", "y-2x=1"),
        # A number of the question that is also the answer.
        ("Half of them, 0.5, are red. Express your answer as a decimal.", "0.5", r"\frac12"),
        ("A third of 3/4 and twice 1/4: how much?", "0.75", "3/4"),
        ("He drank 70% of it. What is that, as a percentage?", "70", "70%"),
        ("Write 1/2 + 1/4 as one number.", "0.75", "3/4"),
    ],
)
def test_an_answer_in_the_form_of_gold_is_paid(
    question: str, gold: str, answer: str, checker: Checker
) -> None:
    assert checker.check(rf"\boxed{{{answer}}}", Problem("p", question, gold)).correct


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
    for text in (
        "(" * 9000,
        "x/" * 4000 + "x",
        "1+" * 4000 + "1",
        "$" * 9000,
        "a " * 4500,
        "=" * 9000,
    ):
        asked = replace(Problem("p", text, "x+1"), id="q")
        for answer in ("1+x+0", "x/" * 250 + "x", "x+" * 250 + "x", r"\sin" * 120 + "x", "-(" * 8):
            assert checker.check(rf"\boxed{{{answer}}}", asked).method != "timeout"
    assert time.process_time() - began < 4
