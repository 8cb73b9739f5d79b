"""Answers of responses that mark none."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers.checker import Checker
from tests.rewards.grading.answers.tables import cases

VALUES = r"""
She has 50 socks. She washes 35. How many socks has she missed? => 15
+ She has missed 15 socks. | 35 are clean. 50 - 35 = 15, so she has missed 15 socks.
+ So she has missed 50 - 35 = 15 socks.
- So it is 15. | 50 - 35 = 15. | She has missed 15 socks
- She would have missed 15 socks if she washed 35. | She has not missed 15 socks.
- She has missed 15 shirts. | She has 15 clean socks in 3 drawers.
- She has missed 15 socks. Or is it 16?
What is its speed in km/h? => 60
+ The speed is 120 / 2 = 60 km/h.
A teacher needs 100. How many packs must she buy? => 9
+ The teacher must buy 9 packs.
What percent is the discount? => 25
+ The discount is $15 / $60 = 25%.
Mrs. Lee pays $50. How much change does she get? => 26
+ Mrs. Lee gets $26 in change.
How long does it take to make 960 toys? => 6
+ So, it takes 6 hours to make 960 toys.
Solve $3x - 7 = 20$. => 9
+ So, the solution is x = 9.
- So the speed is x = 9.
What is the median of 3, 7, 10, 12 and 19? => 10
+ Therefore, the median is 10.
- Thus, the median is not 10.
Simplify: $4(2x-5)-3(x-4)$. => 5x - 8
+ So the simplified expression is $5x - 8$.
If $f(x) = 3x + 2$, what is $f(4)$? => 14
+ So, f(4) = 14. | Therefore, $f(4) = 14$. | Thus, we get \(f(4) = 12 + 2 = 14\).
- So, f(5) = 14. | So, f(4) = 14 or 15. | So, f(4) = 12 + 3 = 14. | If x = 2, f(4) = 14.
How many positive divisors does 36 have? => 9
+ 36 has 9 positive divisors.
- 9 has 36 positive divisors. | 36 has 9 negative divisors. | 36 has 9 or 10 positive divisors.
What is the sale price? => 15
- Therefore, the discount is $15.
Jo had 75 trading cards. How many cards does Jo have now? => 95
+ So, Jo has 95 trading cards now.
In which year did the Wall fall? => 1989
+ The Wall fell on **November 9, 1989**.
- It was built in 1961 and fell in 1989.
She has 50 socks. She washes 35. How many socks has she missed? => 4
- First 3, and then 4.
Solve $3x - y = 20$. => 9
- So, the solution is x = 9.
She has 50 socks. She washes 35. How many socks has she missed? => 16
- So she has missed 50 - 35 = 16 socks.
She has 50 socks. She washes 35. How many socks has she missed? => 35
- So she has washed 35 socks.
What percent is the discount? => 15
- The discount is 15 dollars.
Jo gave 19 cards away and has 46. How many cards did Jo have at first? => 65
+ Jo had **65** cards at first (46 + 19 = 65). | So Jo had **65** cards at first.
+ With 19 more, that takes 46 + 19 = **65 cards**.
- Jo had **65** cards at first (46 + 19 = 66). | So Jo would have had **65** cards at first.
- With 19 more, that takes 46 + 19 = **65 boxes**.
Jo has 22 sweets, 11 in a bag. How many bags would Jo have? => 2
+ So Jo would have **2** bags.
Jo has 22 sweets, 11 in a bag. How many bags does Jo have? => 2
- So Jo would have **2** bags.
"""
NAMES = r"""
Do whales breathe air? => Yes
+ Yes, whales are mammals and breathe air.
- Yes, some do. So no. | Whales are mammals, yes, they are.
Do whales breathe air? => No
+ No. They are fish.
- No, they are fish. Wait, that is wrong, they are mammals.
Who wrote the novel? => Ann Lee
+ Ann Lee | It was written by Ann Lee. It was written in 1818. | The novel was written by Ann Lee.
- Ann Lee or Bo Day | It was written by Ann Lee. It was written by Bo Day.
- The novel was praised by Ann Lee. | It was not written by Ann Lee.
Who wrote the novel? => Yes
- Yes, it was.
Where was she born? => Cork
+ Ann Lee, who was born in **Cork**, Ireland.
Who wrote the novel? => Ann
- The novel was written by Ann
Which university was founded first, Harvard or Yale? => Harvard
+ Harvard was founded first. Yale was founded in 1701.
- Harvard was not founded first.
Which university was founded first, Harvard or Yale? => Yale
- Yale was founded in 1701.
Which university was founded first, Harvard or Yale? => Oxford
- Oxford was founded first.
"""


@pytest.mark.parametrize(("problem", "line", "right"), cases(VALUES))
def test_a_complete_last_sentence_says_what_is_asked(
    problem: Problem, line: str, right: bool, checker: Checker
) -> None:
    assert checker.check(f"Let me see.\n{line}", problem).correct == right


@pytest.mark.parametrize(("problem", "response", "right"), cases(NAMES))
def test_a_last_sentence_names_what_is_asked(
    problem: Problem, response: str, right: bool, checker: Checker
) -> None:
    assert checker.check(response, problem).correct == right


@pytest.mark.parametrize(
    ("response", "gold", "right"),
    [
        ("The planet is **Neptune**.", "Neptune", True),
        ("The neighbour of Uranus is **Neptune**.", "Neptune", False),
        ("Triton is a moon of Neptune. The answer is Neptune.", "Neptune", True),
        ("Triton is a moon of Neptune. The answer is Saturn.", "Neptune", False),
        ("Neptune has it. The answer is Saturn or Neptune.", "Neptune", False),
        ("D) lizard\n\nExplanation: Lizards are reptiles.", "D", True),
        ("It is **D) lizard**.\n\nBats (C) are mammals.", "D", True),
        ("It is not **D) lizard**.\n\nBats (C) are mammals.", "D", False),
        ("It is **D) lizard** or **C) bat**.\n\nI cannot say.", "D", False),
        ("Answer: D) lizard. Note that C) would be right too.", "D", False),
        ("D) lizard\n\nExplanation: C) is as good, as bats are.", "D", False),
        ("D) lizard\n\nThese are animals.", "D", False),
        ("C) bat\n\nExplanation: D) lizard is no mammal.", "D", False),
    ],
)
def test_a_response_is_read_whole(response: str, gold: str, right: bool, checker: Checker) -> None:
    question = "Which is it?" + "\nA) cow\nB) eagle\nC) bat\nD) lizard" * (gold == "D")
    problem = Problem("p", question, gold, "math")
    assert checker.check(response, problem).correct == right


@pytest.mark.parametrize(
    ("response", "right"),
    [
        (r"The solutions are \(\boxed{3}\) and \(\boxed{-2}\).", True),
        (r"The solutions are \(\boxed{3}\) and \(\boxed{2}\).", False),
        (r"The solution is \(\boxed{3}\).", False),
    ],
)
def test_boxes_in_round_brackets_are_one_list(response: str, right: bool, checker: Checker) -> None:
    problem = Problem("p", "Find all solutions of $x^2 - x - 6 = 0$.", "3, -2", "math")
    assert checker.check(response, problem).correct == right
