"""An answer after its own arithmetic is the answer; working that is wrong is none."""

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
    ("50", "Answer: 15/30 = 50%"),
    ("0.5", "Answer: 1/2 = 0.5"),
    ("-4", "Answer: -(6 - 2) = -4"),
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
    ("1", "Answer: " + "(" * 9 + "9" + "^12)" * 9 + " = 1"),
    ("11", "Answer: = 11 ="),
)


@pytest.mark.parametrize(("gold", "response"), RIGHT)
def test_the_last_side_is_the_answer(checker: Checker, gold: str, response: str) -> None:
    assert checker.check(response, Problem("p", "How many?", gold, "number")).correct


@pytest.mark.parametrize(("gold", "response"), WRONG)
def test_other_equations_state_no_number(checker: Checker, gold: str, response: str) -> None:
    assert not checker.check(response, Problem("p", "How many?", gold, "number")).correct


def test_long_chains_and_large_numbers_come_back_as_they_are() -> None:
    for answer in ("=".join(["1"] * 9), "9" * 5000 + "=" + "9" * 5000, "=" * 100, "1=" * 50000):
        assert without_working(answer) == answer
