"""A marked answer that is a sentence, an equation, or a value with a remark."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

CAKES = (
    "Nora had 30 muffins and baked 24 more. Her brother Tim ate 6. "
    "How many muffins does Nora have in total?"
)
PAY = "Omar gets $14 for 2 hours of tutoring. How much would he earn for 9 hours of tutoring?"
MORE = (
    "Ida read 21 pages on Monday and 13 on Sunday. "
    "How many more pages did Ida read on Monday than on Sunday?"
)
LESS = "A pear costs 3 dollars and a melon 11. How much less does the pear cost than the melon?"
QUIZ = (
    "A quiz has 30 questions; Lee skipped none. He scored 84. "
    "How many questions did Lee answer correctly?"
)
PARTS = "A bag holds pens and rulers. Each ruler costs $2. How many pens and rulers are in the bag?"
COST = "Jo has 3 bags for $120 each. How much do all the bags cost?"

RIGHT = [
    (CAKES, "48", "Answer: Nora has a total of 48 muffins."),
    (CAKES, "48", "Answer: Nora will have **48** muffins in total"),
    (CAKES, "48", "**Answer:** In total, Nora has **48 muffins**."),
    (PAY, "63", "**Answer:** Omar would earn **$63** for 9 hours of tutoring."),
    (PAY, "63", "Final answer: He would earn $63."),
    (MORE, "8", "Answer: **8 pages** more on Monday than on Sunday"),
    (MORE, "8", "Answer: Ida read **8** more pages on Monday than on Sunday."),
    (MORE, "8", "The answer is 8 more pages on Monday than on Sunday."),
    (LESS, "8", "Answer: **$8** less for the pear than for the melon"),
    (QUIZ, "22", r"The answer is \(22\) questions answered correctly (and 8 incorrectly)."),
    (PARTS, "9", "Answer: 9 (5 pens and 4 rulers)"),
    (PARTS, "9", "Answer: **9** (2 pens, 3 pencils and 4 rulers)"),
    (COST, "360", "Answer: $360.00 (three hundred sixty dollars)"),
    (COST, "360", "Answer: $360 (three hundred and sixty)"),
]
WRONG = [
    (CAKES, "48", "Answer: Nora does not have a total of 48 muffins."),
    (CAKES, "48", "Answer: Tim has a total of 48 muffins."),
    (CAKES, "48", "Answer: Nora has about 48 muffins in total."),
    (CAKES, "48", "Answer: Nora has at least 48 muffins in total."),
    (CAKES, "48", "Answer: Nora has between **48** and 50 muffins."),
    (CAKES, "48", "Answer: Nora has a total of 48 boxes of muffins."),
    (CAKES, "48", "Answer: Nora has a total of 48 or more muffins."),
    (CAKES, "48", "Answer: Nora ate a total of 48 muffins, not counting hers."),
    (CAKES, "48", "Answer: Nora has a total of 48 dozen muffins."),
    (CAKES, "48", "Answer: Nora has **48** muffins or **54**."),
    (CAKES, "48", "Answer: A total of **48** muffins is wrong."),
    (CAKES, "48", "Answer: Nora has a total of 48 muffins? No."),
    (CAKES, "48", "Answer: Nora has twice 48 muffins in total"),
    (CAKES, "48", "Answer: Nora has 48 more muffins than Tim"),
    (PAY, "63", "Answer: Omar would earn **$63** per hour of tutoring."),
    (PAY, "63", "Answer: Omar would not earn **$63** for 9 hours."),
    (PAY, "63", "Answer: Omar would earn **63 euros** for 9 hours of tutoring."),
    (PAY, "63", "Answer: Omar would earn $63 for 8 hours of tutoring."),
    (PAY, "63", "Answer: Omar would earn less than **$63** for 9 hours."),
    (PAY, "63", "Answer: Omar would owe **$63** for 9 hours of tutoring."),
    (PAY, "9", "Answer: Omar would earn **$63** for 9 hours of tutoring."),
    (MORE, "8", "Answer: **8 pages** fewer on Monday than on Sunday"),
    (MORE, "8", "Answer: **8 pages** more on Sunday than on Monday"),
    (MORE, "8", "Answer: **8 hours** more on Monday than on Sunday"),
    (MORE, "8", "Answer: **8 times** more on Monday than on Sunday"),
    (MORE, "8", "Answer: more than **8** pages on Monday"),
    (MORE, "8", "Answer: **8** or **9** more on Monday than on Sunday"),
    (MORE, "8", "Answer: **8%** more on Monday than on Sunday"),
    (LESS, "8", "Answer: **$8** more for the pear than for the melon"),
    (LESS, "8", "Answer: **$8** less for the melon than for the pear"),
    (QUIZ, "22", r"The answer is \(22\) questions answered incorrectly."),
    (QUIZ, "22", r"The answer is \(22\) questions answered incorrectly (and 8 correctly)."),
    (QUIZ, "22", "Answer: 22 (and 8)"),
    (QUIZ, "22", "Answer: 22 questions (and 8 more questions)"),
    (QUIZ, "22", "Answer: 22 (or 23)"),
    (QUIZ, "22", "Answer: 22 (maybe 23)"),
    (QUIZ, "22", "Answer: 22 (wrong)"),
    (QUIZ, "22", "Answer: 22 (23 questions)"),
    (QUIZ, "22", "Answer: 22 (not)"),
    (QUIZ, "22", "Answer: 22 (thousands)"),
    (QUIZ, "22", "Answer: 22 (twenty-three)"),
    (QUIZ, "22", "Answer: 22 (approximately)"),
    (PARTS, "9", "Answer: 9 (5 pens and 5 rulers)"),
    (PARTS, "9", "Answer: 9 (5 pens or 4 rulers)"),
    (PARTS, "9", "Answer: 9 pens (and 4 rulers)"),
    (PARTS, "9", "Answer: 9 (5 and 4)"),
    (COST, "360", "Answer: $360.00 (three hundred seventy dollars)"),
    (COST, "360", "Answer: $360.00 (three hundred sixty euros)"),
    (COST, "360", "Answer: $360 (three hundred sixty thousand dollars)"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "gold", "response"), RIGHT)
def test_a_sentence_states_the_one_value_that_the_question_asks_for(
    question: str, gold: str, response: str, checker: Checker
) -> None:
    assert checker.check(response, Problem("p", question, gold, "number")).correct


@pytest.mark.parametrize(("question", "gold", "response"), WRONG)
def test_a_sentence_that_says_something_else_states_no_value(
    question: str, gold: str, response: str, checker: Checker
) -> None:
    for kind in ("number", "math"):
        assert not checker.check(response, Problem("p", question, gold, kind)).correct


@pytest.mark.parametrize(
    ("question", "gold", "response", "right"),
    [
        ("Let $p/q$ be it in lowest terms. Find $p+q$.", "17", "Answer: $p+q=17$", True),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p + q = 8 + 9 = 17$", True),
        (r"What is $\tan 60^\circ$?", r"\sqrt3", r"Final answer: $\tan 60^\circ = \sqrt{3}$", True),
        (r"Find $\sin 30^\circ$.", r"\frac12", r"\boxed{\sin 30^\circ = \frac12}", True),
        ("Given $x+y=5$ and $x=4$, find $x-y$.", "3", "Answer: $x-y=3$", True),
        ("Given $x+y=5$ and $x=4$, find $x-y$.", "5", "Answer: $x+y=5$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $2p+q=17$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p-q=17$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $pq=17$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p+q=8+8=17$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p+q=17$ or $18$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p+q=8+9$", False),
        (r"What is $\tan 60^\circ$?", r"\sqrt{3}", r"Answer: $\tan 30^\circ = \sqrt{3}$", False),
        (r"What is $\tan 60^\circ$?", r"\sqrt{3}", r"Answer: $2\tan 60^\circ = \sqrt{3}$", False),
        ("Find $x$ if $2x+1=9$.", "9", "Answer: $2x+1=9$", False),
        ("Find $p+q$.", "17", "Answer: $p+q=-17$", False),
        ("Let $pq=9$ and $p>q$. What is $pq$?", "9", "Answer: $pq=9$", False),
    ],
)  # fmt: skip
def test_an_equation_for_what_is_asked_states_its_right_side(
    question: str, gold: str, response: str, right: bool, checker: Checker
) -> None:
    assert checker.check(response, Problem("p", question, gold, "math")).correct == right


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("Answer: Door 2 is green.", True), ("The answer is green", True),
        ("Answer: Door 1 is green.", False), ("Answer: Door 2 is not green.", False),
        ("Answer: Door 2 is red.", False), ("Answer: Door 2 was green.", False),
        ("Answer: Door 2 is green or red.", False), ("Answer: If door 2 is green.", False),
        ("Answer: Door 2 is green? No.", False),
    ],
)  # fmt: skip
def test_a_word_may_be_said_of_what_the_question_asks_about(
    response: str, right: bool, checker: Checker
) -> None:
    problem = Problem("p", "Doors are red or green. What colour is door 2?", "green", "text")
    assert checker.check(response, problem).correct == right
