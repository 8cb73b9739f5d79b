"""Units that a question names in formulas or after "the number of", and values that it names."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from tests.rewards.grading.answers.tables import cases

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


NAMES = r"""
list: Determine the values of $u$ and $v$. => 7, 2
+ (7, 2) | u = 7, v = 2 | v = 2, u = 7 | (u, v) = (7, 2) | 7, 2 | u = 7 \text{ and } v = 2
- (2, 7) | u = 2, v = 7 | v = 7, u = 2 | (u, v) = (2, 7) | (v, u) = (7, 2) | 2, 7 | 2 \text{ and } 7
list: Find $u, v$ and $w$. => 7, 2, 5
+ u=7,v=2,w=5 | w=5,v=2,u=7 | 7, 2, 5
- u=2,v=7,w=5 | w=7,v=2,u=5 | 2, 7, 5
list: Solve the system $u + 2v = 11$, $u - v = 5$. => 7, 2
+ u = 7, v = 2 | v = 2, u = 7 | 7, 2 | (7, 2) | (u, v) = (7, 2)
- u = 2, v = 7 | v = 7, u = 2 | 2, 7 | (2, 7) | (u, v) = (2, 7)
list: Solve the system $u + v = 9$, $uv = 14$. => (7, 2), (2, 7)
+ (2, 7), (7, 2)
- (2, 7), (7, 3)
list: The line is $y = mx + b$. Find its slope and its intercept. => 7, 2
+ m = 7, b = 2
list: Find $u$ and $v$. => u = 7, v = 2
+ 7, 2 | v = 2, u = 7 | (7, 2)
- 2, 7 | v = 7, u = 2 | (2, 7)
list: Determine $T(10), T(11)$ and $T(12)$. => 7, 2, 5
+ T(10) = 7, T(11) = 2, T(12) = 5 | T(11) = 2, T(10) = 7, T(12) = 5
- T(10) = 2, T(11) = 7, T(12) = 5 | T(10) = 7, T(11) = 2, T(13) = 5 | 2, 7, 5
list: He paid for some pens and some rulers. How many of each did he buy? => 7, 2
+ 7 \text{ pens}, 2 \text{ rulers} | 2 \text{ rulers and } 7 \text{ pens} | 7, 2
- 2 \text{ pens}, 7 \text{ rulers} | 7 \text{ rulers and } 2 \text{ pens}
list: How many boys and how many girls are there, respectively? => 7, 2
+ 7, 2 | 2 \text{ girls}, 7 \text{ boys}
- 2, 7 | 7 \text{ girls}, 2 \text{ boys}
list: Circles meet $AB$ and $BC$ in $D$ and $E$, respectively. Find all possible angles. => 7, 2
+ 2, 7
list: Find all real numbers $a, b,$ and $c$ that fit. => \frac14, -3, 6
+ a = \frac14, b = -3, c = 6 | c = 6, b = -3, a = 0.25 | (a, b, c) = (\frac14, -3, 6)
- a = -3, b = \frac14, c = 6 | (a, b, c) = (6, -3, \frac14) | a = \frac14, b = -3
list: Solve for $x$. => 7, 2
+ x = 7, x = 2 | x = 2, x = 7 | x_1 = 2, x_2 = 7 | x = 2 \text{ or } 7
- x = 7, x = 3 | x_1 = 2, x_2 = 8
Simplify $9x - 2x$. => 7x
+ 7x | y = 7x
- x = 7x | 7x = x | x = 7 x
math: How long is it? => 7
+ m = 7 \text{ m}
What is $\cos B$? => \frac{\sqrt{7}}{4}
+ \cos B = \frac{\sqrt7}{4} | \cos(B) = \frac{\sqrt7}{4} | \cos{B} = \frac{\sqrt7}{4}
+ \cos \angle B = \frac{\sqrt7}{4}
- \sin B = \frac{\sqrt7}{4} | \cos A = \frac{\sqrt7}{4} | \cos^2 B = \frac{\sqrt7}{4}
- \tan B = \frac{\sqrt7}{4}
math: Evaluate $i^{38}$. => -1
+ -1
- i^2 | i^{42} | i^{-2}
Evaluate $i^{41}$. => i
+ i
- i^5 | i^{45} | i^{-3} | -i^3
Evaluate $5 + i^{43}$. => 5-i
+ -i+5
- 5+i^3 | 5+i^{47}
Evaluate the sum. => 7-2i
+ 7-2\sqrt{-1} | -2i+7 | 7 - \sqrt{-4}
- 7+2\sqrt{-1}^3 | 7+2/i | 7+\frac{2}{i} | \frac{7i+2}{i} | 7+2i \cdot i \cdot i | 7+2(-1)^{3/2}
- 7-2/i^3
Divide. => \frac{1}{i}
+ -i | 1/i
In polar form? => e^{i\pi/3}
+ e^{\frac{\pi i}{3}}
list: Find the values of $k$ and $m$. => 6, 8
+ m = 8, k = 6
- k = 6, k = 8
list: The numbers $k$ and $m$ are even. Find all $k$. => 6, 8
+ k = 6, k = 8
"""
RATES = r"""
A car drives 130 miles in 2 hours. What is its average speed? => 65
+ 65 miles per hour | 65 miles each hour | 65 mph | $65$ miles per hour
- 65 km per hour | 65 miles per minute | 65 miles per gallon
A car drives 130 km in 2 hours. How fast is it? => 65
+ 65 kilometers per hour
- 65 miles per hour
Milk fills 130 liters in 2 minutes. At what rate? => 65
+ 65 liters per minute
- 65 liters per hour
She earned $130 in 2 hours. What is her rate of pay? => 65
+ $65 per hour | $65
- $65 per day
What is her annual salary, if she earns $65? => 65
+ $65 per year | $65 a year
- $65 a month
2 plums cost $130. How much does each plum cost? => 65
+ $65 per plum | $65 each
- $65 per pear
2 plums cost $130. How much is one plum? => 65
+ $65 per plum
- $65 per pear
2 plums cost $65. How much do they cost? => 65
+ $65
- $65 per plum | $65 per hour
A car drives at a speed of 9 mph. How many miles is that? => 65
+ 65 miles
- 65 miles per hour
At this speed, what distance is it in an hour, in miles? => 65
+ 65 miles
- 65 miles per day
What is its speed in miles per hour? => 65
+ 65 \frac{\text{miles}}{\text{hour}}
- 65 \frac{\text{miles}}{\text{day}} | 65 \frac{\text{km}}{\text{hour}}
Find it in $\mathrm{m/s^2}$. => 65
+ 65\,\mathrm{m\,s^{-2}}
- 65\,\mathrm{cm\,s^{-2}}
How fast is it, in km/h? => 65
+ 65 km/h | 65 km per hour | 65 km an hour | 65 kph
- 65 km h | 65 km hours | 65 h km
How many miles per hour is it? => 65
+ 65 miles/hour | 65 miles each hour
- 65 miles hours | 65 mile hour
Find it in $\mathrm{m/s}$. => 65
+ 65 m/s
- 65 m s | 65 s m
How many kilowatt hours is it? => 65
+ 65 kilowatt hours
- 65 kilowatts per hour | 65 kilowatt/h
How fast is it? => 65 km/h
+ 65 kilometers per hour
- 65 km h | 65 kilometers per day
How many eggs are there? => 70
- 70 dozen
How many dozen eggs are there? => 70
+ 70 dozen eggs
"""


@pytest.mark.parametrize(("problem", "answer", "right"), [*cases(NAMES), *cases(RATES)])
def test_values_belong_to_their_names_and_rates_to_their_units(
    problem: Problem, answer: str, right: bool, checker: Checker
) -> None:
    assert checker.check(rf"\boxed{{{answer}}}", problem).correct == right


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("The terms are $b_1 = 3$, $b_2 = 6$. Find $b_6$.", "b_6|b_{6}|x", "b_5|b_{16}|b_1"),
        (r"What is the sum $S_{10}$ of ten terms?", "S_{10}|S", "S_9|S_{11}"),
        ("Let $g(2) = 5$. What is the value of $g(7)$?", "g(7)|y", "g(2)|g(17)"),
        ("If $b_1 = 3$ and $b_2 = 6$, then $b_6 =$", "b_6", "b_5"),
        ("What is the sixth term, $b_6$, of it?", "b_6", "b_5"),
        ("What do $b_1, b_2, b_3$ tell? Find the sixth term.", "b_6|b", ""),
        ("Let $b_1 = 3$. Find the sixth term.", "b_6|b", ""),
        ("Solve for $x$.", "x_1|x", ""),
    ],
)
def test_a_name_with_another_number_is_another_thing(
    checker: Checker, question: str, right: str, wrong: str
) -> None:
    for kind in ("number", "math"):
        problem = Problem("n", question, "96", kind)
        for name in right.split("|"):
            assert checker.check(rf"\boxed{{{name} = 96}}", problem).correct, name
        for name in wrong.split("|"):
            assert not name or not checker.check(rf"\boxed{{{name} = 96}}", problem).correct, name


@pytest.mark.parametrize("kind", ["number", "math", "list"])
def test_two_values_are_not_one(checker: Checker, kind: str) -> None:
    for gold in ("6", "8"):
        problem = Problem("n", "Solve for $k$.", gold, kind)  # pyright: ignore[reportArgumentType]
        assert checker.check(f"Answer: k = {gold}", problem).correct
        for answer in (
            "k = 6, k = 8", "k = 6 or k = 8", "k = 6. Also k = 8.", "k = 8. And k = 6",
            "k = 6, m = 8", "m = 6, k = 8", "k = 6, where m = 8", "k = 6 and m = 8",
            "k = 8, so k = 6", "k = 8, so m = 6",
        ):  # fmt: skip
            assert not checker.check(f"Answer: {answer}", problem).correct, answer
    check = Problem("n", "Solve for $k$.", "6", kind)  # pyright: ignore[reportArgumentType]
    for answer in ("k = 6, as 2k = 12", "k = 6. Check: for k = 6 it holds.", "k = 6 because k > 5"):
        assert checker.check(f"Answer: {answer}", check).correct, answer
