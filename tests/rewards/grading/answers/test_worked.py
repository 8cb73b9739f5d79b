"""An answer after its own arithmetic, or in two forms; wrong working and other forms are none."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.answers.worked import without_working

RIGHT = (
    ("11", "The answer is 6 + 5 = 11."),
    ("16", "This is a classic puzzle. The answer is 12 + 4 = 16."),
    ("11", r"\boxed{2 \cdot 6 - 1 = 12 - 1 = 11}"),
    ("11", "Answer: x = 2^3 + 3 = 11"),
    ("7", r"\boxed{f(2)=2^2+3=7}"),
    ("18", "Answer: $2 * 9 = $18"),
    ("72", "Answer: 9 x 8 = 72"),
    ("0.5", "Answer: 1/2 = 0.5"),
    ("-4", "Answer: -(6 - 2) = -4"),
    ("24", "Answer: 4! = 24 ways"),
    ("4", r"Answer: \sqrt{16} = 4"),
)
WRONG = (
    # Computed wrongly, not to its end, to another end, of letters, by zero, without bound.
    ("11", "Answer: 6 + 4 = 11"),
    ("11", "Answer: 6 + 5"),
    ("11", "Answer: 11 = 6 + 5"),
    ("11", "Answer: 6 + 5 = 11 = 12"),
    ("11", "Answer: 6 + 5 = 12"),
    ("4", "Answer: 2x + 3 = 11"),
    ("11", "Answer: 3x + 2 = 11"),
    ("5", "Answer: 5/0 = 5"),
    ("1", "Answer: 1^99999999 = 1"),
    ("1", "Answer: " + "(" * 8 + "9" + "^12)" * 8 + " = 1"),
    ("11", "Answer: = 11 ="),
    ("5", r"Answer: \sqrt{16} = 5"),
)


@pytest.mark.parametrize(("gold", "response"), RIGHT)
def test_the_last_side_is_the_answer(checker: Checker, gold: str, response: str) -> None:
    assert checker.check(response, Problem("p", "How many?", gold, "number")).correct


def test_the_last_side_may_be_a_percentage(checker: Checker) -> None:
    for question, right in (("What percent is it?", True), ("What is 10% of 500?", False)):
        problem = Problem("p", question, "50", "number")
        assert checker.check("Answer: 15/30 = 50%", problem).correct == right


@pytest.mark.parametrize(("last", "right"), [("20 jugs", True), ("20 ladles", False)])
def test_the_last_side_counts_what_is_asked(checker: Checker, last: str, right: bool) -> None:
    problem = Problem("p", "How many jugs are there on 4 trays?", "20", "number")
    assert checker.check(f"Answer: 12 + 8 = {last}", problem).correct == right


@pytest.mark.parametrize(("gold", "response"), WRONG)
def test_other_equations_state_no_number(checker: Checker, gold: str, response: str) -> None:
    assert not checker.check(response, Problem("p", "How many?", gold, "number")).correct


def test_long_chains_and_large_numbers_come_back_as_they_are() -> None:
    for answer in ("=".join(["1"] * 9), "9" * 5000 + "=" + "9" * 5000, "=" * 100, "1=" * 50000):
        assert without_working(answer) == answer


FORMS = (
    (r"\frac{1}{2}", [
        r"$\frac12$, or 50%.", "1/2 (50%)", "1/2 or 0.5", "1/2 = 0.5 = 50%", "0.5, i.e. 50%",
        r"\frac12, which is 0.5", "1/2 (i.e. 0.5)", "2/4 = 1/2", r"The value is $\frac12$, or 50%.",
    ]),
    (r"\ln 3", [
        r"$\ln 3$, which is approximately 1.0986", r"$\ln 3$ (about 1.1)",
        r"$\ln(3)$, or approximately 1.099", r"The value is $\ln 3$, approximately 1.0986.",
    ]),
    ("x>5", [
        r"$x>5$, i.e. $(5,\infty)$", r"$x>5$ or $(5,\infty)$", r"$(5,\infty)$, that is, $x>5$",
    ]),
    ("120", [
        "One hundred and twenty, i.e. 120 ways", "one hundred twenty",
        "120 (one hundred and twenty)",
        "One hundred and twenty (120) ways", "a hundred and twenty ways",
    ]),
    ("2500", ["two thousand five hundred", "Two thousand, five hundred ways"]),
)  # fmt: skip
OTHER_FORMS = (
    (r"\frac{1}{2}", [
        "1/2, or 60%", "1/2 or 1/3", "1/2, or 0.5%", "1/3, or 1/2", "1/2 (or 1/3)", "50%",
        r"\frac12, which is 0.6", "1/2 (i.e. 0.55)", r"The value is $\frac12$, or 5%.",
        "1/2 or maybe 0.5", "1/2 = 0.5 = 5%",
    ]),
    (r"\ln 3", [
        r"$\ln 3$, which is approximately 1.2", r"$\ln 3$, which is 1.0986",
        r"$\ln 3$, or about 1.5",
        r"approximately $\ln 3$", "about 1.0986",
    ]),
    ("x>5", [
        r"$x>5$, i.e. $[5,\infty)$", r"$x>5$, i.e. $(-\infty,5)$", r"$x>5$ or $x<-5$",
    ]),
    ("120", [
        "One hundred and thirty, i.e. 120 ways", "120, i.e. 121 ways", "one hundred, twenty",
        "one hundred or twenty", "twelve hundred", "one hundred twenty thousand",
        "one hundred and twenty-one", "120 hours or 120 days",
    ]),
)  # fmt: skip


def test_forms_of_one_value_are_one_answer(checker: Checker) -> None:
    for gold, answers in FORMS:
        for answer in answers:
            problem = Problem("p", "What is the value?", gold, "math")
            assert checker.check(f"Answer: {answer}", problem).correct, answer


def test_each_form_has_to_be_right(checker: Checker) -> None:
    for gold, answers in OTHER_FORMS:
        for answer in answers:
            problem = Problem("p", "What is the value?", gold, "math")
            assert not checker.check(f"Answer: {answer}", problem).correct, answer


def test_a_constant_of_integration_has_any_letter(checker: Checker) -> None:
    for question, answer, right in (
        ("Find the antiderivative.", "x^2+c", True), (r"Compute $\int 2x\,dx$.", "x^2+K", True),
        ("Find the antiderivative.", "x^2", False), ("Find the antiderivative.", "x^2-c", False),
        ("Add $C$ to $x^2$.", "x^2+c", False),
    ):  # fmt: skip
        problem = Problem("p", question, "x^2+C")
        assert checker.check(rf"\boxed{{{answer}}}", problem).correct == right, (question, answer)
