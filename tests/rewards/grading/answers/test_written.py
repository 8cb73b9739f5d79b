"""Numbers as people write them: ordinals, words, currencies, lowest terms, directions, pairs."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from tests.rewards.grading.answers.tables import cases

WRITTEN = r"""
Which term is it? => 23
+ 23rd | 23^{rd} | 23^{\text{rd}} | 23^\text{rd} | 23\text{rd} | the 23rd | twenty-three
+ twenty-third | the twenty third | Twenty three | twenty three.
- 23th | 22nd | 23rd or 24th | twenty | twenty-three thousand | twenty-two
list: Which terms are they? => 21, 30
+ twenty one, thirty | 30, 21
- twenty two, thirty
list: Which terms are they? => 21, 120
+ one hundred and twenty, twenty one.
Which term is it? => 11^{\text{th}}
+ 11 | 11th | the 11th | eleven | eleventh
- 12 | 11st
Which share of it is left? => 5
- 5 thirds | five twelfths | 5 of 8
Write it as a common fraction in simplest form. => \frac{9}{4}
+ \frac94 | 9/4 | 2.25 | 2\frac14 | \frac{9}{4} \text{ cups}
- \frac{18}{8} | 18/8 | x=\frac{18}{8} | \frac{18}{8} \text{ cups} | 2\frac{2}{8}
Write it as a reduced improper fraction. => \frac{9}{4}
+ \frac94 | 2.25
- 2\frac14 | \frac{27}{12}
Write it as a mixed number. => 2\frac14
+ 2\frac14 | 2 1/4 | 2.25
- \frac94
Write it as a fraction. => \frac{9}{4}
+ \frac94 | \frac{18}{8} | 2\frac14
Does she make a profit or a loss, and of how much money? => 30
+ $30 | 30 dollars | 30 dollars profit
- 30 dollars loss | 30 loss
How many miles east or west of the tree is it? East is positive. => 4
+ 4 miles | 4 miles east
- 4 miles west
He climbs up 3 steps and down 9. How many steps down is he? => 6
+ 6 steps down
Was the train early or late, and by how many minutes? => 9
+ 9 minutes
- 9 minutes late | 9 minutes early
A pair is 2 socks. How many socks are there? => 8
+ 8 socks | 8
- 8 pairs | 8 pairs of socks
He has 30 socks. How many pairs of socks is that? => 15
+ 15 pairs | 15 pairs of socks
- 15 socks
How many minutes does it last? => 95
+ 95 minutes | **95** minutes | 1 hour 35 minutes | 1 hr 35 min | 1 hour and 35 minutes
- 135 | 1 hour 45 minutes | 1 hour 35 seconds | 1.35 hours | second
How many hours does it last? => 1.5
+ 1.5 hours (90 minutes) | 90 minutes (1.5 hours) | 90 minutes, or 1.5 hours
- 90 minutes | 90 minutes (1.4 hours) | 1.5 minutes (90 seconds)
How many inches tall is she? => 64
+ 5 feet 4 inches | 5 ft 4 in
- 5 feet 5 inches
How many eighteenths of it are red? => 7
+ 7
- 7 eighteenths
How many million people live there? => 7
+ 7 | 7 million | 7 million people
- 7 thousand | 7000000
How many people live there? => 7000000
+ 7 million | 7000000
- 7
At what time does it end? => 7
+ 7 | 7 p.m. | 7:00 AM | 7:00 | 7 \text{ PM} | 07:00 | 7 o'clock
- 8 p.m. | 7:30 | 7:30 PM | 19:00
How many hours does it take? => 7
- 7:00 | 7 p.m.
When does it end? => 7:00 AM
+ 7 AM | 7 a.m. | 07:00 AM | 7:00 \text{ a.m.}
- 7 PM | 7 | 7:00 PM | 7:30 a.m.
When does it end? => 7:30
+ 07:30 | 7:30
- 7:03 | 730
How many quarters has she? => 7
+ 7 quarters
How much is it? => 460
+ Rs. 460 | Rs 460 | ₹460 | INR 460 | 460 INR | CHF 460 | A\$460 | 460/- | Rs. 460/- | HK$460
- Rs. 461 | 460/2 | USD/460
How much does it cost in rupees? => 460
+ Rs. 460 | ₹460 | 460 rupees | 460/-
- $460 | CHF 460 | €460 | 460 yen
A cap costs Rs 92. How much does he pay for five? => 460
+ Rs 460 | 460
- $460 | £460
A cap costs $92. How much does he pay for five? => 460
+ $460 | 460 dollars
- 460 cents | ₹460 | €460
How many dollars is it? => 460
+ $460
- A\$460 | CA\$460
"""


@pytest.mark.parametrize(("problem", "answer", "right"), cases(WRITTEN))
def test_a_number_is_read_as_it_is_written(
    problem: Problem, answer: str, right: bool, checker: Checker
) -> None:
    assert checker.check(rf"\boxed{{{answer}}}", problem).correct == right


@pytest.mark.parametrize(
    ("question", "gold", "response", "right"),
    [
        ("Convert $1101_2$ to base ten.", "13", "Answer: 13 (in base ten)", True),
        ("Convert $1101_2$ to base ten.", "13", "Answer: 13 (in base two)", False),
        ("He eats two or more. How many are left?", "1", "Answer: 1 (two)", False),
        ("He eats two or more. How many are left?", "1", "Answer: 1 (or more)", False),
        ("Which river is longest?", "Amazon", "Answer: Amazon River", True),
        ("Which river is longest?", "Amazon", "Answer: Amazon Basin", False),
        ("Which is older?", "Yale University", "Answer: Yale University", True),
        ("Find all $f$.", "f(x)=x+c", r"\boxed{f(x) = x + c \text{ for some constant } c}", True),
        ("Find all $f$.", "f(x)=x+c", r"\boxed{f(x) = x + c \text{ where c is a constant}}", True),
        ("Find all $f$.", "f(x)=x+c", r"\boxed{f(x) = x + c \text{ for some integer } c}", False),
        ("Find all $f$.", "f(x)=x+c, where c>0", r"\boxed{f(x) = x + c, where c > 0}", True),
        ("Find all $f$.", "f(x)=x+c, where c>0", r"\boxed{f(x) = x + c}", False),
        ("Simplify $6x-2x$.", "4x", r"\boxed{6x - 2x = 4x}", True),
        ("Simplify $6x-2x$.", "4x", r"\boxed{6x - 2x = 4}", False),
        (r"Give it as $(r, \theta)$.", r"(3, \pi)", r"\boxed{r = 3, \theta = \pi}", True),
        (r"Give it as $(r, \theta)$.", r"(3, \pi)", r"\boxed{r = \pi, \theta = 3}", False),
        ("How many trees are left?", "950", "#### 950 trees are left in the orchard. 🌳", False),
        (
            "The orchard has 1080 trees. 130 fall. How many trees are left?",
            "950",
            "#### 950 trees are left in the orchard. 🌳",
            True,
        ),
        ("How many gigabytes are free?", "88", r"$\boxed{88 \text{ GB}}$", True),
        ("How many megabytes are free?", "88", r"$\boxed{88 \text{ GB}}$", False),
        ("Who? A) Hume B) G. W. F. Hegel C) Kant", "C", r"\boxed{\text{C) Kant}}", True),
        ("Who? A) Hume B) G. W. F. Hegel C) Kant", "C", r"\boxed{\text{B) G. W. F. Hegel}}", False),
        ("It is dry. Use? (a) salt (b) sock (c) glue", "A", "So the answer is (a).", True),
        ("It is dry. Use? (a) salt (b) sock (c) glue", "A", "So the answer is (b).", False),
    ],
)
def test_what_stands_around_an_answer_may_repeat_the_question(
    question: str, gold: str, response: str, right: bool, checker: Checker
) -> None:
    assert checker.check(response, Problem("p", question, gold, "math")).correct == right
