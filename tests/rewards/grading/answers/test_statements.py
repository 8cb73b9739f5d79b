"""Words around the value of an answer line: which may go, and which change or take back."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.answers.statements import value_stated
from tests.rewards.grading.answers.tables import cases

LINES = r"""
A pupil had 60 pens in a box and sold 15 of them. How many pens are left in the box? => 45
+ The answer is 45. Note that 44 would leave one out. | The answer is 45 because 9 * 5 = 45.
+ The answer is $45$, since nine fives are $45$. | Answer: 45 (since 9 * 5 = 45)
+ Answer: 45 (9 × 5 = 45). | Answer: 45, which is what is left. | Answer: 45, so he keeps that many.
+ The answer is 45, in total, so he earns that much. | The answer is 45 in all.
+ The answer is 45 pens altogether. | The answer is 45, not 50. | Answer: 45 (not 50)
+ **The answer is 45.** I am sure of it. | The final answer is 45. Let me check this: 9 * 5 = 45.
+ Final answer: 45. Nine bags of five hold that many. | Final answer: 45 pens. These fill the box.
+ Answer: The number of pens is 45. | Answer: He has 45 pens left.
+ Answer: There are 45 pens in the box. | <answer>The pupil has 45 pens left.</answer>
+ The answer is 45, which is $9 \times 5$.
+ The answer is 45!
- The answer is 45 or 46 | The answer is not 45 | Answer: 45 (not certain) | The answer is 45? No.
- The answer is 45 is wrong | The answer is between 45 and 46
- The answer is 45. Wait, that is wrong. | The answer is 45. No, it is 46.
- The answer is 45. Or 46. | The answer is 45, but this is not certain.
- The answer is 45. However, 46 fits better. | The answer is 45, which rounds to 50.
- The answer is 45, which is incorrect. | The answer is 45, so 46 with him.
- The answer is 45. It should be 46. | The answer is 45! No, 46.
- The answer is less than 45 because of that. | Answer: 45 (or 46) | Answer: 45, which is 46
- Answer: 45 (i.e. 46) | Answer: 45 (that is 46 pens) | Answer: 45 (wrong) | Answer: 45 (9 * 5 = 46)
- The answer is 45, which is $9 \times 6$. | The answer is 45, which is 46 pens.
- Answer: He does not have 45 pens. | Answer: He has at most 45 pens. | Answer: Half of them is 45.
- Answer: He would have 45 pens. | Answer: He has 45 and she has 50 | Answer: The first guess was 45
Which point is it? => (2,4)
+ Answer: (2,4), which is what is left. | Answer: (2,4), which is (2, 4)
- Answer: (2,4), which is (3,4) | Answer: (2,4), that is, (3,4)
What is the volume? => 9\pi
+ Answer: 9\pi, not \frac{9}{4}\pi | Answer: 9\pi, which is 9 \pi
- Answer: 9\pi, which is 8 \pi | Answer: \frac{9}{4}\pi, not 9\pi
"""


@pytest.mark.parametrize(("problem", "response", "right"), cases(LINES))
def test_words_around_a_value_cost_nothing_unless_they_take_it_back(
    problem: Problem, response: str, right: bool, checker: Checker
) -> None:
    assert checker.check(response, problem).correct == right


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("The answer is C. Note that A is wrong, too.", "C"),
        ("The answer is C because A is not.", "C"),
        ("Answer: C, because A is too small.", "C"), ("The answer is (C), since it burns.", "C"),
        ("The answer is C, not A.", "C"), ("The answer is option C, which is fire.", "C"),
        ("I thought of A. Final answer: C", "C"), ("The answer is A. Or C.", None),
        ("The answer is C. Wait, no, A.", "A"), ("Answer: C. because it burns", None),
        ("Answer: C. It burns", None), ("The answer is A) or C)", None),
        (r"\boxed{A} and \boxed{C}", None),
    ],
)  # fmt: skip
def test_words_after_a_letter(response: str, letter: str | None, checker: Checker) -> None:
    choices = ("sand", "water", "fire")
    paid = [
        gold
        for gold in "ABC"
        if checker.check(response, Problem("p", "?", gold, "choice", choices)).correct
    ]
    assert paid == ([letter] if letter else [])


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("Answer: Yes, it is.", True), ("Answer: Yes, because 7 is prime.", True),
        ("Answer: No, it is not.", False), ("Answer: Yes, no, I am not sure.", False),
        (r"\boxed{\text{Yes, it is.}}", True), ("Answer: Yes or no.", False),
    ],
)  # fmt: skip
def test_yes_may_be_explained(response: str, right: bool, checker: Checker) -> None:
    for kind in ("text", "math"):
        assert checker.check(response, Problem("p", "Is it?", "yes", kind)).correct == right


def test_a_yes_may_not_deny_the_question(checker: Checker) -> None:
    asked = Problem("p", "Ben likes odd numbers. Is 7 odd?", "yes", "text")
    for answer, right in (
        ("Yes, 7 is odd.", True), ("Yes, 7 is not even.", True), ("Yes, 7 is not odd.", False),
        ("Yes, 7 isn't odd.", False), ("Yes. 7 is not even.", True),
    ):  # fmt: skip
        assert checker.check(f"Answer: {answer}", asked).correct == right, answer


def test_a_number_that_may_head_a_list_is_no_value() -> None:
    assert value_stated("1. First, we add.", labelled=True) == "1. First, we add."
    assert value_stated("1. It is clear.") == "1"
    assert value_stated("45. It is clear.", labelled=True) == "45"
