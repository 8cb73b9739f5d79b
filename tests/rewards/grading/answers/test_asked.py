"""Units that a question names in formulas or after "the number of", and values that it names."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

UNITS = [
    (r"Find the speed in $\mathrm{km} / \mathrm{h}$.", "km/h", "km m/s mph h", "number"),
    (r"Determine its speed, in $\mathrm{m/s}$.", "m/s", "km/h m cm/s", "math"),
    (r"What is the acceleration in $\mathrm{m}/\mathrm{s}^2$?", "m/s^2", "m/s m", "math"),
    (r"Find the area in $\mathrm{~cm}^{2}$.", "cm^2", "cm cm^3 m^2", "math"),
    (r"Give the volume, in $\text{m}^3$.", "m^3", "m^2 cm^3", "number"),
    (r"Find the mass in $\mathrm{kg}$.", "kg", "g lb m", "number"),
    (r"Find the density in $\mathrm{kg}/\mathrm{m}^3$.", "kg/m^3", "kg m^3 kg/m", "math"),
    ("Find the number of minutes that the trip takes.", "minutes", "hours s dollars", "number"),
    ("What is the total number of seconds?", "seconds", "minutes kg", "number"),
    ("Determine the number of lamps.", "lamps", "m hours", "number"),
    ("Find the slope in inches per mile.", r"in/mile", "in/s ft/mile", "math"),
    ("How many dozens of eggs are there?", "dozen", "eggs kg", "number"),
    ("Find the work in joules.", "J", "N kg s", "math"),
]


@pytest.mark.parametrize(("question", "unit", "others", "kind"), UNITS)
def test_a_unit_is_the_one_that_the_question_names(
    checker: Checker, question: str, unit: str, others: str, kind: str
) -> None:
    problem = Problem("u", question, "70", kind)  # pyright: ignore[reportArgumentType]
    right = rf"\boxed{{70 \text{{ {unit}}}}}"
    assert checker.check(right, problem).correct
    assert checker.check(r"\boxed{70}", problem).correct
    for other in others.split():
        assert not checker.check(rf"\boxed{{70 \text{{ {other}}}}}", problem).correct, other
        assert not checker.check(f"Answer: 70 {other}", problem).correct, other


def test_dozens_stay_no_number_where_single_things_are_counted(checker: Checker) -> None:
    eggs = Problem("u", "How many eggs are there?", "70", "number")
    assert not checker.check("Answer: 70 dozen", eggs).correct
    dozens = Problem("u", "How many dozen eggs are there?", "70", "number")
    assert checker.check("Answer: 70 dozen eggs", dozens).correct


NAMED = r"""
Determine the values of $u$ and $v$. => 7, 2
+ (7, 2) | u = 7, v = 2 | v = 2, u = 7 | (u, v) = (7, 2) | 7, 2 | u = 7 \text{ and } v = 2
- (2, 7) | u = 2, v = 7 | v = 7, u = 2 | (u, v) = (2, 7) | (v, u) = (7, 2)
Find all real numbers $a, b,$ and $c$ that fit. => \frac14, -3, 6
+ a = \frac14, b = -3, c = 6 | c = 6, b = -3, a = 0.25 | (a, b, c) = (\frac14, -3, 6)
- a = -3, b = \frac14, c = 6 | (a, b, c) = (6, -3, \frac14) | a = \frac14, b = -3
Solve for $x$. => 7, 2
+ x = 7, x = 2 | x = 2, x = 7 | x_1 = 2, x_2 = 7 | x = 2 \text{ or } 7
- x = 7, x = 3 | x_1 = 2, x_2 = 8
"""


def test_values_of_several_names_belong_to_their_names(checker: Checker) -> None:
    question = gold = ""
    for line in NAMED.strip().split("\n"):
        if " => " in line:
            question, gold = line.split(" => ")
            continue
        problem = Problem("n", question, gold, "list")
        for answer in line[2:].split(" | "):
            verdict = checker.check(rf"\boxed{{{answer}}}", problem)
            assert verdict.correct == (line[0] == "+"), (question, answer)


def test_a_name_is_not_in_what_it_is_said_to_be(checker: Checker) -> None:
    problem = Problem("n", "Simplify $9x - 2x$.", "7x", "math")
    assert checker.check(r"\boxed{7x}", problem).correct
    assert checker.check(r"\boxed{y = 7x}", problem).correct
    for answer in ("x = 7x", "7x = x", "x = 7 x"):
        assert not checker.check(rf"\boxed{{{answer}}}", problem).correct, answer
    length = Problem("n", "How long is it?", "7", "math")
    assert checker.check(r"\boxed{m = 7 \text{ m}}", length).correct


def test_a_function_of_an_angle_is_the_one_that_is_asked_for(checker: Checker) -> None:
    problem = Problem("n", r"What is $\cos B$?", r"\frac{\sqrt{7}}{4}", "math")
    for name in (r"\cos B", r"\cos(B)", r"\cos{B}", r"\cos \angle B"):
        assert checker.check(rf"\boxed{{{name} = \frac{{\sqrt7}}{{4}}}}", problem).correct, name
    for name in (r"\sin B", r"\cos A", r"\cos^2 B", r"\tan B"):
        assert not checker.check(rf"\boxed{{{name} = \frac{{\sqrt7}}{{4}}}}", problem).correct


def test_a_power_of_the_imaginary_unit_is_work_left_to_do(checker: Checker) -> None:
    problem = Problem("n", "Evaluate $i^{38}$.", "-1", "math")
    turned = Problem("n", "Evaluate $i^{41}$.", "i", "math")
    sum_ = Problem("n", "Evaluate $5 + i^{43}$.", "5-i", "math")
    assert checker.check(r"\boxed{-1}", problem).correct
    assert checker.check(r"\boxed{i}", turned).correct
    assert checker.check(r"\boxed{-i+5}", sum_).correct
    for answer in ("i^2", "i^{42}", "i^{-2}"):
        assert not checker.check(rf"\boxed{{{answer}}}", problem).correct, answer
    for answer in ("i^5", "i^{45}", "i^{-3}", "-i^3"):
        assert not checker.check(rf"\boxed{{{answer}}}", turned).correct, answer
    for answer in ("5+i^3", "5+i^{47}"):
        assert not checker.check(rf"\boxed{{{answer}}}", sum_).correct, answer
