"""Answers to questions with options: a letter, or the text of an option."""

from dataclasses import replace

import pytest

from coterie.datatypes import AnswerKind, Problem
from coterie.rewards.grading.answers import Checker, letter_of

CHOICES = ("a force", "two forces", "none of these", "3/4")


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("Answer: B", "B"), ("(B)", "B"), ("B", "B"), ("B.", "B"), (r"\boxed{B}", "B"),
        (r"\boxed{\text{B}}", "B"), (r"\boxed{(B)}", "B"), ("<final_answer>B</final_answer>", "B"),
        ("Answer: **B**", "B"), ("the answer is b", "B"), ("Answer: option B", "B"),
        ("Answer: B!", "B"), ("Answer: B. two forces", "B"), ("Answer: B, two forces", "B"),
        ("Answer: B. because of gravity", None), ("Answer: two forces", "B"),
        ("Answer: Two forces.", "B"), (r"\boxed{3/4}", "D"), ("Answer: B\nAnswer: see above", "B"),
        ("Answer: A\nAnswer: B", "B"),
        # Never the first letter of something else.
        ("Answer: A force acts", None), ("Answer: Because", None), ("Answer: I do not know", None),
        ("Answer: E", None), ("Answer: A or B", None), ("Answer: A) or B)", None),
        ("Answer: A. and B.", None), ("Answer: A. B.", None), ("Answer: A) OR B)", None),
        ("Answer: (A), (B)", None), ("Answer: **A.** or **B.**", None),
        ("Answer: A) or option B", None), ("Answer: B. A force is not enough", None),
        ("Answer: B. I am sure", None), ("Answer: B) or (B)", None),
        ("Answer: B. or rather, two forces", None), ("A force acts", None),
        ("I choose B here", None), ("", None), (r"\boxed{}", None), ("Answer: , in total", None),
        # Any dash sets off the text of an option.
        ("Answer: **B** — two forces", "B"), ("Answer: B – two forces", "B"),
        ("The answer is B—two forces.", "B"), ("Answer: **D** — 3/4", "D"),
        ("Answer: **B – two forces**", "B"), ("Answer: (B) --- two forces", "B"),
        ("Answer: **B** — a force", None), ("Answer: B – none of these", None),
        ("Answer: B—a force", None), ("Answer: B — I am not sure", None),
        ("Answer: **B** — not two forces", None), ("Answer: B — two forces or a force", None),
        ("Answer: B – D", None), ("Answer: D –3/4", None), ("Answer: D — -3/4", None),
    ],
)  # fmt: skip
def test_choices_are_letters_or_option_texts(response: str, letter: str | None) -> None:
    checker = Checker()
    for gold in "ABCD":
        verdict = checker.check(response, Problem("p", "", gold, "choice", choices=CHOICES))
        assert verdict.correct == (gold == letter)
        assert verdict.method == ("none" if verdict.answer is None else "choice")


def test_an_option_is_read_with_its_sign_and_without_its_spaces() -> None:
    asked = Problem("p", "?", "C", "choice", choices=("1", "-2", "-1", "$x>1$"))
    for response, right in (("C. -1", True), ("C - -1", True), ("C. 1", False), ("-1", True)):
        assert Checker().check(f"Answer: {response}", asked).correct == right, response
    asked = replace(asked, gold="D")
    assert Checker().check("Answer: x > 1", asked).correct


def test_an_option_is_read_with_either_apostrophe() -> None:
    asked = Problem("p", "?", "B", "choice", choices=("the car", "the driver's seat"))
    assert Checker().check("Answer: The driver’s seat", asked).correct


def test_a_letter_that_is_an_option_text_is_the_letter() -> None:
    assert letter_of("A", ("B", "A", "S", "D")) == "A"
    assert letter_of("S", ("B", "A", "S", "D")) == "C"
    assert letter_of("C", ("Error", "a", "b", "c")) == "C"
    assert letter_of("c", ("Error", "a", "b", "c")) == "D"
    assert letter_of("c", ("w", "x", "y", "z")) == "C"
    assert letter_of("same", ("same", "same")) is None


def test_an_option_in_brackets_or_of_other_case_is_read_as_it_is_written() -> None:
    assert letter_of("C. (1, 2)", ("(1, 1)", "(2, 1)", "(1, 2)")) == "C"
    assert letter_of("C (1, 1)", ("(1, 1)", "(2, 1)", "(1, 2)")) is None
    assert letter_of("Bb × Bb", ("bb × bb", "Bb × Bb", "BB × Bb")) == "B"
    assert letter_of("B. BB × Bb", ("bb × bb", "Bb × Bb", "BB × Bb")) is None


def test_a_letter_with_its_option_is_that_letter_whatever_the_option_names() -> None:
    options = ("red", "blue", "green", "(A), (B), and (C)")
    assert letter_of("D. (A), (B), and (C)", options) == "D"
    assert letter_of("D. (A), (B), and (D)", options) is None
    assert letter_of("B. blue", options) == "B"
    assert letter_of("B. red", options) is None


OPTIONS = ("red", "blue or green", "1/4", r"\frac{4}{5}", "$x^2+1$", "32 cm")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B: blue or green", "B"), (r"\textbf{(B)}\ \text{blue or green}", "B"),
        ("B – blue or green", "B"), ("C: 0.25", "C"), (r"C. \frac{2}{8}", "C"), ("0.25", "C"),
        ("4/5", "D"), (r"(D) $\dfrac45$", "D"), ("1 + x^2", "E"), ("F: 32", "F"), ("32 cm", "F"),
        ("32 kg", None), ("B: not blue", None), ("B: no, C", None), ("B: purple", None),
        ("B: green", None), ("B: red", None), ("(B, 32)", None), ("B: 1/4", None), ("D: 1/4", None),
        ("B, because it is", None), ("B and C", None), ("E: x^2+2", None),
        ("B (blue or green)", "B"), ("C (1/4).", "C"), ("B (red)", None), ("B (or C)", None),
    ],
)  # fmt: skip
def test_a_letter_counts_alone_or_with_its_own_option(text: str, letter: str | None) -> None:
    assert letter_of(text, OPTIONS) == letter


def test_a_typeset_option_answers_by_letter_or_value(checker: Checker) -> None:
    asked = Problem("p", "?", "C", "choice", choices=("8", "10", "12", "14"))
    for answer in (r"\textbf{(C)}\ 12", r"\text{(C) } 12", "12", "(C)"):
        assert checker.check(rf"\boxed{{{answer}}}", asked).correct, answer
    assert not checker.check(r"\boxed{\textbf{(C)}\ 10}", asked).correct


@pytest.mark.parametrize(
    ("response", "right"),
    [
        (r"\boxed{C. Two storms.}", True), (r"\boxed{C. A cold front.}", False),
        (r"\boxed{C. It rains where they meet.}", True), ("The answer is Two storms. (C).", True),
        ("The answer is Two storms. (A).", False), ("**C. Two storms, not one.**", False),
        ("**B. Not warm air**", False),
    ],
)  # fmt: skip
def test_a_letter_and_the_text_of_another_option_are_no_answer(
    response: str, right: bool, checker: Checker
) -> None:
    options = ("A cold front.", "Not warm air", "Two storms.")
    asked = Problem("p", "?", "C", "choice", choices=options)
    assert checker.check(response, asked).correct == right
    assert checker.check("**B. Not warm air**", replace(asked, gold="B")).correct


def test_an_option_alone_is_an_answer(checker: Checker) -> None:
    asked = Problem("p", "?", "C", "choice", choices=("red", "blue", "green"))
    for answer, right in (
        ("C. green", True),
        ("green", True),
        ("C. blue", False),
        ("blue", False),
        ("C. green or blue", False),
        ("C. green\nA. red", False),
    ):
        assert checker.check(answer, asked).correct == right


BALLS = "A team has $90. A ball costs $15.60. What is the greatest number of balls it can buy?"


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("**B** (five balls cost $78.00, six would cost $93.60)", True),
        ("B (5 balls cost $78)", True), ("(B) 5 (five balls cost $78)", True),
        ("It can buy 5 balls.", True), ("The number of balls is 5", True),
        ("B (6 balls cost $78)", False), ("B (the answer is 6)", False),
        ("B (C costs less)", False),
        ("B (it is C)", False), ("B (I am not sure)", False), ("B (six balls is right)", False),
        ("(B) 6 (five balls cost $78)", False), ("B (five)", False),
        ("B? (five balls cost $78)", False), ("It can buy 6 balls", False),
        ("A ball costs 5 dollars", False), ("The team has 5", False),
    ],
)  # fmt: skip
def test_a_remark_or_a_sentence_stands_around_an_option(answer: str, right: bool) -> None:
    asked = Problem("p", BALLS, "B", "choice", choices=("4", "5", "6", "7"))
    assert Checker().check(f"Answer: {answer}", asked).correct == right


@pytest.mark.parametrize("kind", ["math", "choice"])
def test_options_may_stand_in_the_question(kind: AnswerKind) -> None:
    question = "What is 12% of 50?\n(A) 5\n(B) 6\n(C) 60"
    asked = Problem("p", question, "B", kind)
    for answer, right in (
        ("B", True), ("(B) 6", True), ("6", True), ("B. 6", True), ("(A) 6", False),
        ("(C)", False), ("5", False), ("A. 5", False), ("(B) 60", False),
    ):  # fmt: skip
        assert Checker().check(f"Answer: {answer}", asked).correct == right, answer
    # As MATH and AMC print them.
    question = r"What is it? $\text{(A)}\ 5\qquad\textbf{(B)}\ 6 \qquad \mathrm{(C)} 60$"
    asked = Problem("p", question, "B", kind)
    for answer, right in (
        (r"\textbf{(B)}\ 6", True), ("B", True), ("6", True), (r"\textbf{(C)}\ 60", False),
        (r"\textbf{(B)}\ 60", False), ("60", False),
    ):  # fmt: skip
        assert Checker().check(rf"\boxed{{{answer}}}", asked).correct == right, answer
    # Two letters are no options, nor are letters out of order.
    for listed in ("A. red B. blue", "B. red A. blue C. green", "A. red C) blue B. green"):
        asked = Problem("p", f"Which? {listed}", "B", "math")
        assert not Checker().check("Answer: blue", asked).correct


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("Therefore, option B is the correct answer.", "B"), ("Option B is correct.", "B"),
        ("Hence, (B) is correct.", "B"), ("Thus, **B** is the best choice.", "B"),
        ("The metal is neon, which is option B.", None), ("It is B.", "B"),
        ("The metal is iron, which is option B.", "B"), ("Answer: It is B.", "B"),
        ("Answer: The metal is iron.", "B"), ("Answer: The metal is neon.", "A"),
        ("故选B。", "B"), ("所以答案是B。", "B"), ("应选：B", "B"),
        # Not all options that are looked at are chosen.
        ("Option A is correct.\nOption B is correct.\nAnswer: C", "C"),
        ("Option A is correct. It shines.\nI am not sure.", None),
        ("If it rusts, option B is correct.\nI do not know.", None),
        ("Therefore, option B is incorrect.", None), ("Hence, B is correct or C is.", None),
        ("Answer: The metal is not iron.", None), ("Answer: The gas is iron.", None),
        ("Answer: The metal is neon or iron.", None), ("Option B is correct if it rusts.", None),
        ("Answer: A\n\nTherefore, option B is correct.", "B"),
    ],
)  # fmt: skip
def test_a_sentence_says_which_option_is_right(response: str, letter: str | None) -> None:
    choices = ("neon", "iron", "argon")
    for gold in "ABC":
        asked = Problem("p", "Which of these is a metal?", gold, "choice", choices=choices)
        assert Checker().check(response, asked).correct == (gold == letter)
