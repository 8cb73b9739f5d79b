"""Letters and lists whose order counts, and those whose order does not."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

# GOLD: what is right | ... ; what is wrong | ...
ORDERED = r"""
TTH: TTH | T, T, H | \text{TTH} | TTH. ; THT | HTT | TH | TTHH
BDAC: BDAC | B D A C ; ABCD | CADB
EWN: EWN ; NEW | WEN
GATC: GATC ; CATG | ACTG
C A B: CAB | C, A, B ; ABC
QT: QT | Q \cdot T ; TQ | Q + T
xyyx: xyyx ; xxyy
aabb: aabb ; abab | a^2b^2
TTH, HTT: HTT, TTH ; THT, HTT
oak, elm: elm, oak ; kao, mel
D, A, B: D, A, B | \text{D, A, B} ; A, B, D
S-T-R: S-T-R | S – T – R | STR | S, T, R ; S-R-T | R-S-T
S \to T \to R: S \to T \to R | S → T → R | S \rightarrow T \rightarrow R | S-T-R ; T \to S \to R
STR: S-T-R ; S-R-T | S+T+R
oak-elm-ash: oak-elm-ash | Oak-elm-ash | \text{oak-elm-ash} ; oak-ash-elm | elm-oak-ash
Nora Emil Otto: Nora Emil Otto ; Emil Nora Otto
Nora-Emil-Otto: Nora-Emil-Otto | Nora – Emil – Otto ; Nora-Otto-Emil
6-2-7: 6-2-7 | 6–2–7 | 6 - 2 - 7 ; 6-7-2 | -3 | 627
4-1: 4-1 | 4–1 ; 3 | 1-4
"""
PRODUCTS = r"""
mgh: mgh | m \cdot g \cdot h | E = mgh ; mg + h
IR: IR | V = IR | I R ; I + R
nRT: RTn | Tn R ; nR + T
2AB: 2BA | AB \cdot 2 ; AB
P V: V P ; P + V
V = IR: RI | V = RI ; V = I + R
A, C: C, A ; A, B
xyz: zyx ; xy + z
S-T: S-T | -T+S ; T-S
aek-bim: -bim+aek ; bim-aek
mgh-fd: -fd+mgh | hgm - df ; fd-mgh
S - T - R: S - R - T | S-(T+R) ; S - T + R
"""


def pairs(table: str) -> list[tuple[str, str, bool]]:
    rows = [line.split(": ", 1) for line in table.strip().split("\n")]
    return [
        (gold, answer.strip(), right)
        for gold, answers in rows
        for side, right in zip(answers.split(" ; "), (True, False), strict=True)
        for answer in side.split(" | ")
    ]


@pytest.mark.parametrize(("gold", "answer", "right"), pairs(ORDERED + PRODUCTS.lstrip("\n")))
def test_letters_keep_their_order_unless_they_are_a_product(
    gold: str, answer: str, right: bool, checker: Checker
) -> None:
    assert checker.check(rf"\boxed{{{answer}}}", Problem("p", "?", gold)).correct == right


def test_letters_are_a_product_where_the_question_asks_for_a_formula(checker: Checker) -> None:
    asked = Problem("p", "Give the charge $Q$ in terms of $C$ and $U$.", "CU")
    assert checker.check(r"\boxed{UC}", asked).correct
    assert checker.check(r"\boxed{Q = UC}", asked).correct
    # The letters are to be those of the question.
    asked = Problem("p", "Name, in terms of the map's letters, the way from $S$ to $T$.", "CU")
    assert not checker.check(r"\boxed{UC}", asked).correct


@pytest.mark.parametrize(
    ("question", "ordered"),
    [
        ("Arrange the numbers from least to greatest.", True),
        ("List the three sums in increasing order.", True),
        ("In what order do they finish?", True),
        ("Write them from the largest to the smallest.", True),
        ("What is the correct order of the three weights?", True),
        ("Find the shortest path of the robot through the cells.", True),
        ("What are the next three numbers?", True),
        ("What are the first three terms of the geometric sequence?", True),
        ("What are the three roots, in increasing order?", True),
        ("Find all roots. Enter them in ascending order.", True),
        ("What is the order of the group? Find all primes that divide it.", False),
        ("Find the sequence's three largest members.", False),
        ("Find all solutions.", False),
        ("Find all lengths of the paths. What is in the sequence?", False),
        ("Find all numbers whose digits are in increasing order.", False),
        ("Which numbers are in the sequence?", False),
        ("List all roots in any order.", False),
        ("They are written in increasing order. Find all values of it.", False),
        ("What do you add in order to get them? List all ordered pairs.", False),
    ],
)  # fmt: skip
def test_a_list_has_an_order_where_the_question_asks_for_one(
    question: str, ordered: bool, checker: Checker
) -> None:
    asked = Problem("p", question, "2, 5, 9")
    assert checker.check(r"\boxed{2,5,9}", asked).correct
    assert checker.check(r"\boxed{9, 5, 2}", asked).correct == (not ordered)


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("4, 6, 9", "[4, 6, 9]", True),
        ("4, 6, 9", "[9, 6, 4]", True),
        ("4, 6, 9", "[4, 6, 8]", False),
        ("['4', '6', '9']", "['4', '6', '9']", True),
        ("[4, 6, 9]", "4, 6, 9", True),
        # Brackets in the gold answer say that order counts.
        ("[4, 6, 9]", "9, 6, 4", False),
        # Two numbers in brackets may be an interval.
        ("4, 6", "[4, 6]", False),
        ("4, 6, 9", "(4, 6, 9)", False),
    ],
)
def test_three_or_more_in_square_brackets_are_a_list(
    gold: str, answer: str, right: bool, checker: Checker
) -> None:
    assert checker.check(rf"\boxed{{{answer}}}", Problem("p", "?", gold)).correct == right


def test_a_list_in_square_brackets_keeps_the_order_that_is_asked_for(checker: Checker) -> None:
    asked = Problem("p", "Sort the numbers 9, 4, 6.", "4, 6, 9")
    assert checker.check("<answer>[4, 6, 9]</answer>", asked).correct
    assert not checker.check("<answer>[9, 6, 4]</answer>", asked).correct
