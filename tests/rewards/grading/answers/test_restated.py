"""The question's own content is no answer to it, whatever does nothing is done to it."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from coterie.datatypes import AnswerKind, Problem
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.answers.canonical import arrangement, canonical, difference
from coterie.rewards.grading.answers.grammar import read
from coterie.rewards.grading.answers.restated import content_of, kind_of


class Task(NamedTuple):
    """One question, what restates it, and what answers it."""

    question: str
    gold: str
    restated: tuple[str, ...]
    right: tuple[str, ...]
    kind: AnswerKind = "math"


TASKS = {
    "expand": Task(
        "Expand (x+2)(x-3).",
        "x^2-x-6",
        (
            "(x+2)(x-3)",
            "(x-3)(x+2)",
            "(x+2)(x-3)+0",
            "1(x+2)(x-3)",
            r"\frac{2(x+2)(x-3)}{2}",
            r"\frac{(x+2)(x-3)}{1}",
            "(2+x)(-3+x)",
            "-(x+2)(3-x)",
            "(x+2)(x-3)+5-5",
        ),
        ("x^2-x-6", "-6-x+x^2", "x^2-(x+6)"),
    ),
    "factor": Task(
        "Factor $6y^2+y-2$.",
        "(2y-1)(3y+2)",
        ("6y^2+y-2", "-2+y+6y^2", "(6y^2+y-2)^1", r"\frac{6y^2+y-2}{1}", "6y^2+0+y-2"),
        ("(3y+2)(2y-1)", "(1-2y)(-3y-2)", r"(2y-1) \cdot (2+3y)"),
    ),
    "cancel": Task(
        r"Simplify $\frac{x^2-1}{x-1}$.",
        "x+1",
        (r"\frac{x^2-1}{x-1}", "(x^2-1)(x-1)^{-1}", "(x^2-1)/(x-1)"),
        ("x+1", "1+x"),
    ),
    "reduce": Task(
        r"Simplify $\frac{6x}{8}$.",
        r"\frac{3x}{4}",
        (r"\frac{6x}{8}", r"\frac{12x}{16}", r"\frac{6}{8}x", "6x/8"),
        (r"\frac{3x}{4}", r"\frac34 x", "0.75x"),
    ),
    "collect": Task(
        "Simplify $2x+3x$.", "5x", ("2x+3x", "3x+2x", "3x+2x+0", "(2+3)x"), ("5x", r"x \cdot 5")
    ),
    "root": Task(
        r"Simplify $\sqrt{72}$.",
        r"6\sqrt2",
        (
            r"\sqrt{72}",
            r"1\sqrt{72}",
            "72^{1/2}",
            "72^{0.5}",
            r"\frac{5\sqrt{72}}{5}",
            r"0+\sqrt{72}",
        ),
        (r"6\sqrt{2}", r"\sqrt2 \cdot 6", r"6 \cdot 2^{1/2}"),
    ),
    "denominator": Task(
        r"Rationalize the denominator of $\frac{1}{\sqrt2-1}$.",
        r"\sqrt2+1",
        (
            r"\frac{1}{\sqrt2-1}",
            r"(\sqrt2-1)^{-1}",
            r"\frac{2}{2(\sqrt2-1)}",
            r"\frac{1}{-1+\sqrt2}",
        ),
        (r"1+\sqrt2", r"\sqrt{2}+1"),
    ),
    "solve": Task(
        "Solve 2x+3=11.",
        "x=4",
        ("2x+3=11", "11=2x+3", "2x+3+0=11", "2x=8", "x-4=0", r"\frac{2x+3}{1}=11"),
        ("x=4", "4", "4=x", "x = 4.0"),
    ),
    "divided": Task("Solve $x/3=7$.", "x=21", ("x/3=7", r"\frac13 x=7", "7=x/3"), ("x=21", "21")),
    "turned": Task("Solve $5-x=1$.", "x=4", ("5-x=1", "-x+5=1", "1=5-x"), ("x=4", "4")),
    "line": Task(
        "Write $3x+y=5$ in slope-intercept form.",
        "y=-3x+5",
        ("3x+y=5", "y+3x=5", "5=3x+y", "3x+y-5=0", "6x+2y=10", "3x+y+0=5"),
        ("y=-3x+5", "y=5-3x", "-3x+5=y"),
    ),
    "circle": Task(
        "Write $x^2+y^2-6x+2y=15$ in the form $(x-h)^2+(y-k)^2=r^2$.",
        "(x-3)^2+(y+1)^2=25",
        ("x^2+y^2-6x+2y=15", "x^2-6x+y^2+2y-15=0", "2x^2+2y^2-12x+4y=30"),
        ("(x-3)^2+(y+1)^2=25", "(y+1)^2+(x-3)^2=5^2", "25=(x-3)^2+(y+1)^2"),
    ),
    "general": Task(
        "Expand $(x-3)^2+(y+1)^2=25$.",
        "x^2+y^2-6x+2y=15",
        ("(x-3)^2+(y+1)^2=25", "(y+1)^2+(x-3)^2=25", "(x-3)^2+(y+1)^2-25=0"),
        ("x^2+y^2-6x+2y=15", "x^2+y^2-6x+2y-15=0"),
    ),
    "powers": Task(
        "Factor $9x^2-27y^3$.",
        "9(x^2-3y^3)",
        ("9x^2-3^3y^3", "(3x)^2-27y^3", "3^2x^2-27y^3", "(-3x)^2-(3y)^3"),
        ("9(x^2-3y^3)", "3^2(x^2-3y^3)", "-9(3y^3-x^2)"),
    ),
    "cubes": Task(
        "Factor $x^3-27$ completely.",
        "(x-3)(x^2+3x+9)",
        ("x^3-3^3", "-(3^3-x^3)", "(-x)^3(-1)-3^3"),
        ("(x-3)(x^2+3x+9)", "(x-3)(x^2+3x+3^2)"),
    ),
    "line's form": Task(
        "Write $y-3=2(x-1)$ in slope-intercept form.",
        "y=2x+1",
        ("2x-y+1=0", "2x-y=-1", "2y=4x+2", "y-1=2x", "y-3=2(x-1)"),
        ("y=2x+1", "y=1+2x", "2x+1=y", "2x+1"),
    ),
    "solved": Task(
        "Solve $3x-4=y-2$ for $y$.",
        "y=3x-2",
        ("3x-y-2=0", "y+2=3x", "3x-4=y-2"),
        ("y=3x-2", "y=-2+3x", "3x-2=y"),
    ),
    "lowest": Task(
        "Write 84/168 in lowest terms.",
        r"\frac12",
        ("84/168", r"\frac{84}{168}", "168/336", r"\dfrac{42}{84}"),
        ("1/2", r"\frac{1}{2}", "0.5"),
    ),
    "fraction": Task(
        "Express 0.375 as a common fraction.",
        r"\frac38",
        ("0.375", ".3750"),
        ("3/8", r"\frac38"),
    ),
    "mixed": Task(
        "Convert 13/4 to a mixed number.",
        r"3\frac14",
        ("13/4", r"\frac{13}{4}", "26/8", "3.25"),
        (r"3\frac{1}{4}", "3 1/4"),
    ),
    "scientific": Task(
        "Write 45,000 in scientific notation.",
        r"4.5\times10^4",
        ("45,000", "45000", "45000.0", r"45000\times10^0"),
        (r"4.5 \times 10^{4}", "4.5e4", "4.5·10⁴"),
    ),
    "decimal": Task("Write $\\frac58$ as a decimal.", "0.625", ("5/8", "10/16"), ("0.625",)),
}


@pytest.fixture(scope="module")
def checker():
    checker = Checker(deadline_s=20.0)
    yield checker
    checker.close()


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("shortcuts", [True, False], ids=["shortcuts", "algebra"])
def test_a_question_restated_is_not_paid(name: str, shortcuts: bool) -> None:
    task = TASKS[name]
    asked = Problem("p", task.question, task.gold, task.kind)
    checker = Checker(shortcuts=shortcuts, deadline_s=20.0)
    restated = [rf"\boxed{{{answer}}}" for answer in task.restated]
    right = [rf"\boxed{{{answer}}}" for answer in task.right]
    paid = [v.answer for v in checker.check_many([(r, asked) for r in restated]) if v.correct]
    refused = [v.answer for v in checker.check_many([(r, asked) for r in right]) if not v.correct]
    checker.close()
    assert (paid, refused) == ([], [])


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
        ("x", "0+x/1", 2),
        (r"\sqrt{x}", "x^{1/2}", 0),
        (r"\frac{1}{x}", "x^{-1}", 0),
        (r"\frac{1}{\sqrt{x}}", "x^{-1/2}", 0),
        ("2^{-x}", r"\frac{1}{2^x}", 0),
        ("x-3", "-(3-x)", 0),
        ("(x-3)^2", "(3-x)^2", 0),
        ("(x-3)^3", "-(3-x)^3", 0),
        ("5x", "2x+3x", 1),
        ("y", r"\frac{x^2y}{x^2}", 1),
        (r"\frac{3x}{4}", r"\frac{6x}{8}", 1),
        ("(x+2)(x-3)", r"\frac{(x-3)(x+2)}{1}", 1),
        ("x^3-27", "x^3-3^3", 1),
        ("4x^2-9", "(2x)^2-3^2", 2),
    ],
)
def test_trivial_steps_are_taken_and_counted(written: str, same: str, steps: int) -> None:
    formula = read(same)
    assert formula is not None
    assert canonical(formula) == (form(written), steps)


@pytest.mark.parametrize(
    ("written", "worked"),
    [
        ("(x+2)(x-3)", "x^2-x-6"),
        (r"\sqrt{x^2}", "x"),
        (r"(\sqrt{x})^2", "x"),
        ("2^{10}", "4^5"),
        ("2^{10}+1", "1025"),
        ("x+2^{65}", "x+4^{32.5}"),
        ("x-3", "3-x"),
        ("(x-3)^3", "(3-x)^3"),
        (r"\sqrt{12}", r"2\sqrt3"),
        ("xy", "x+y"),
        ("x^2", "x^{-2}"),
    ],
)
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


def test_what_a_question_holds_is_read_between_its_words() -> None:
    content = content_of("Solve 2x+3=11 and write a 13/4 as a mixed number, by $x^2+1$ of 4,500.")
    assert len(content.equations) == 1
    assert content.asks_form
    assert {kind for _, kind in content.numbers} == {"fraction", "numeral"}
    assert not content_of("Express your answer as a common fraction.").asks_form


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("84/168", "unreduced"),
        (r"\frac12", "fraction"),
        (r"\frac{13}{4}", "fraction"),
        (r"3\frac14", "mixed"),
        ("3 1/4", "mixed"),
        ("45,000", "numeral"),
        (".5", "numeral"),
        (r"4.5 \times 10^4", "scientific"),
        (r"45000 \times 10^{0}", "numeral"),
        ("4.5e4", "scientific"),
        ("45%", "percent"),
        ("x", ""),
        ("", ""),
    ],
)
def test_a_number_is_of_one_kind(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_a_hostile_question_or_answer_costs_little(checker: Checker) -> None:
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
            checker.check(rf"\boxed{{{answer}}}", asked)
