"""The chain of rules from a response to a verdict."""

import re
from dataclasses import replace

import pytest

from coterie.datatypes import AnswerKind, Problem
from coterie.rewards.grading.answers import Checker


def problem(gold: str, kind: AnswerKind = "math", *, percent: bool = False) -> Problem:
    return Problem(id="p", question="", gold=gold, kind=kind, percent=percent)


# ANSWER => GOLD, of the kind that begins the line, or of kind math.
RIGHT = r"""
\frac{-14}{6} => -\frac73 || 0.75 => \frac{3}{4} || \cos(60^\circ) => \frac12
\cos\frac{\pi}{3} => \frac12 || 0.\overline{3} => \frac13 || 0.1\overline{6} => \frac16
2+3\mathrm{i} => 2+3i || 0 \le x < 1 => [0,1) || 1 > x \ge 0 => [0,1)
x < 2 \text{ or } x > 3 => (-\infty, 2) \cup (3, \infty)
(3, \infty) \cup (-\infty, 2) => (-\infty, 2) \cup (3, \infty) || k \ge 2 => [2, \infty)
1024 => 2^{10} || 4^5 => 2^{10} || \pi \cdot 10^{-8} => \frac{\pi}{10^8}
\frac{2\pi}{8} => \frac{\pi}{4} || 2\sqrt{3} \text{ m} => 2\sqrt3
\frac{\sqrt5-1}{2} => \frac{2}{1+\sqrt5} || (R-r)(R+r) => R^2-r^2 || \frac{Mm}{r} => \frac{mM}{r}
\begin{bmatrix} 0.5 \\ 2 \end{bmatrix} => \begin{pmatrix} 1/2 \\ 2 \end{pmatrix}
2x - y + 3 = 0 => y = 2x + 3 || 10y - 20x = 30 => y = 2x + 3
864 \text{ square inches} => 864 \mbox{ inches}^2 || 204_{\text{five}} => 204_5
(x,y) = (1,2) => (1,2) || n2^{n-1} => n \cdot 2^{n-1} || \frac{\sqrt{3}}{2} => \frac{3}{2\sqrt{3}}
(x+1)^2 => x^2+2x+1 || x=5 => 5 || 5 => x=5 || (0,1] => \left(0, 1\right]
(\frac{1}{2},3) => (0.5, 3) || 2, 1 => 1,2 || \{2,1\} => 1,2
1+\sqrt{19}, 1-\sqrt{19} => 1 \pm \sqrt{19} || x \in [-2,7] => [-2,7] || [-2,7] => x \in [-2,7]
90^\circ => 90 || 15\mbox{ cm}^2 => 15 || 15 => 15\mbox{ cm}^2 || 52_8 => 52_{8} || 52 => 52_8
East => \text{east} || C => \text{(C)} || 50\% => 50 || \text{East!} => \text{east} || n! => n!
(n-1)! => (n-1)\,! || m_{\max }=n^{2}-1 => m_{\max }=n^{2}-1 || \{x \mid x > 5\} => (5,\infty)
\{x \in \mathbb{R} : 0 \le x < 1\} => [0,1) || x \in \mathbb R => (-\infty, \infty)
\{\,\} => \varnothing || \text{infinity} => \infty || x = 1 \text{ and } y = 2 => (1,2)
(r, \theta) = (1, \pi) => (1,\pi) || P(X = 1) = \frac38 => \frac38 || (4343)_6 => 4343_6
3\colon 2 => 3:2 || 3√13 => \sqrt{117} || 60º => 60^\circ || 12 \text{ meters} => 12 \text{ m}
\begin{pmatrix} 2 \\[2mm] 0 \end{pmatrix} => \begin{pmatrix} 2 \\ 0 \end{pmatrix}
3{:}30 \text{ PM} => 3:30 p.m. || tuesday => Tuesday
\{x \mid x < 2 \text{ or } x > 3\} => (-\infty,2) \cup (3,\infty) || \lvert b-a \rvert => |a-b|
cba => abc
# With faces, sizes, names and roundings.
5\sqrt{2} \approx 7.07 => 5\sqrt2 || \frac58 \approx 0.63 => \frac58 || 5\sqrt2 \approx 7.1 => 7.1
x = 5\sqrt2 \approx 7.07 => x=5\sqrt2 || =14 => 14 || \bf 14 => 14 || {\large 14} => 14
\textcolor{blue}{14} => 14 || 5 \over 8 => \frac58 || Q(2,-5) => (2,-5) || (2,-5) => Q(2,-5)
\text{Domain: } (2,5] => (2,5] || \text{Range:}\ (2,5] => (2,5]
\langle 2,0,-5 \rangle => (2,0,-5)
\mathbb{R}\setminus\{4\} => (-\infty,4)\cup(4,\infty)
\mathbb{R} \setminus \{4, -1\} => (-\infty,-1)\cup(-1,4)\cup(4,\infty)
number: 042 => 42 || 1,080 => 1080 || 18 dollars => 18 || \$18.00 => 18
number: 1.024 \times 10^3 => 1024 || \approx 1024 => 1024 || 6 \text{ ways} => 6 || x = 6 cm => 6
number: 6 m => 6 || ⅛ => 0.125 || -3 °C => -3
list: [5, 3, 1] => 1,3,5 || 2,400, 1,350, 864 => 864, 2400, 1350 || 16,200 => 16200
list: \sqrt{12}, 1 => 1,2\sqrt{3} || (3,4), (1,2) => (1,2),(3,4) || -2,-2 => -2,-2
list: {1, 3, 5} => 5, 3, 1
text: they are EQUAL. => They are equal || \text{they are equal!} => They are equal
text: 3:30pm => 3:30 p.m. || Harry’s Bar => Harry's Bar || 《活着》。 => 活着
Harry's Bar => Harry’s Bar || f’(x)=2x => f'(x)=2x
number: 1’234’567 => 1234567
# As models write them.
{1 \over 2} => \frac12 || 4.5 × 10⁻⁴ => 4.5\times10^{-4} || x² => x^2 || 1.(9) => 2
100^{50} => 10^{100} || 4^5 => 2^{10} || 4 = x => x=4 || y(x) = Ce^{3x} => y=Ce^{3x}
f^{-1} = x-1 => f^{-1}(x)=x-1 || \frac{dy}{dx} = -\frac{x}{y} => -\frac{x}{y}
2024-03-14 => \text{March 14, 2024}
number: `7` => 7 || 7 (pens) => 7 || "7" => 7 || 1.25 million => 1250000
number: \$1.25 million => 1250000 || 2.5 thousand people => 2500 || 3{,}75 => 3.75 || 18,00 € => 18
number: €18,50 => 18.5 || “7”. => 7 || \textbf{(C)}\ 12 => 12 || \text{(C) } 12 => 12
number: 6.02·10²³ => 6.02\times10^{23} || 6.02 x 10^23 => 6.02\times10^{23} || 0.\overline{9} => 1
number: ‑17 => -17 || minus 17 => -17 || negative 17 => -17 || １７５０ => 1750 || 1969 AD => 1969
number: In 1969 => 1969 || in the year 1969. => 1969 || 1'234'567 => 1234567
number: 1.234.567,89 => 1234567.89 || 1.234.567 => 1234567 || 45.678,90 => 45678.9
number: \frac{dV}{dt}=3 => 3 || 12,34,567 => 1234567 || \begin{aligned}7\end{aligned} => 7
# Sets, systems, matrices and vectors.
(-\infty, 1] \text{ or } [3, \infty) => (-\infty,1]\cup[3,\infty)
x \leq 1 \lor x \geq 3 => (-\infty,1]\cup[3,\infty)
[3, \infty) \bigcup (-\infty, 1] => (-\infty,1]\cup[3,\infty)
\mathbb{R} \setminus (1, 3) => (-\infty,1]\cup[3,\infty)
\mathbb{R}\setminus[1,3) => (-\infty,1)\cup[3,\infty)
\text{all real numbers} => \mathbb{R} || \mathbb{R} => \text{all real numbers}
\text{no solutions} => \text{no solution} || There are no solutions. => \text{no solution}
\begin{cases} x = 4 \\ y = 3 \end{cases} => (4, 3)
\begin{aligned} x &= 4 \\ y &= 3 \end{aligned} => (4, 3)
[[1, 2], [3, 4]] => \begin{pmatrix}1&2\\3&4\end{pmatrix}
\begin{pmatrix}1&2\cr3&4\end{pmatrix} => \begin{pmatrix}1&2\\3&4\end{pmatrix}
(1, 2) => \begin{pmatrix}1\\2\end{pmatrix} || \langle 1,2\rangle => \begin{pmatrix}1\\2\end{pmatrix}
\vec{v} = \begin{pmatrix}1\\2\end{pmatrix} => \begin{pmatrix}1\\2\end{pmatrix}
# A remark on the parameter.
\frac{\pi}{4}+k\pi, k\in\mathbb{Z} => \frac{\pi}{4}+k\pi
\frac{\pi}{4}+k\pi \text{ for integer } k => \frac{\pi}{4}+k\pi
k\pi \text{ where } k \text{ is an integer} => k\pi || k\pi, k\in\mathbb{Z} => k\pi, k\in\mathbb{Z}
\nicefrac{1}{2} => \frac12 || \sfrac12 => \frac12 || \ang{90} => 90^\circ || \num{5.5} => 5.5
\SI{5}{m} => 5 \text{ m} || \qty{5}{cm} => 5 \text{ cm} || x \ne 2 => x \neq 2 || \bm{5} => 5
\mathbf{\frac{\sqrt{3}}{3}} => \frac{\sqrt3}{3}
\boldsymbol{\frac{\sqrt{3}}{3}} => \frac{\sqrt3}{3}
\left(\begin{smallmatrix} 1 \\ 2 \end{smallmatrix}\right) => \begin{pmatrix} 1 \\ 2 \end{pmatrix}
list: 2\mp\sqrt3 => 2+\sqrt3, 2-\sqrt3 || 1'234'567, 8 => 1234567, 8
text: 14 March 2024 => March 14, 2024 || 4th of July => July 4
"""
WRONG = r"""
[0,1] => (0,1) || (0,1) => [0,1] || (0,1] => [0,1) || (1,2) => (2,1) || (1,2,3) => (1,2)
1,2 => 1,2,3 || (2,1) => 1,2 || y=5 => x=5 || 52_9 => 52_8 || 42 => 52_8 || teas => \text{east}
D => \text{(C)} || 50\% => 0.5 || 0.5 => 50\% || x^2 => x^3
m_{\max }=n^{2}-2 => m_{\max }=n^{2}-1 || n => n! || n-1 => (n-1)! || 3! => 3 || 9^{9^{9^9}} => 4
{ => 4 || <b>4</b> => 5 || \frac{1}{0} => 4
number: 43 => 42 || 5 million => 5 || 5, 6 => 5 || 2^{11} => 1024 || 1024 \pm 1 => 1024
number: \approx 1025 => 1024 || 3! => 3
list: 1,2,2 => 1,1,2 || -2 => -2,-2 || \sqrt{12}, 2 => 1,2\sqrt{3}
text: unequal => They are equal
# A reference below 1 is a share, of which a percentage is the hundredth.
0.25\% => 0.25 || \frac14\% => \frac14 || 5 \text{ m} => 5 \text{ s} || \ang{91} => 90^\circ
# Letters keep their case.
0 => R^2-r^2 || r^2-R^2 => R^2-r^2 || \frac{mm}{R} => \frac{mM}{r}
# Work that is left to do says no value.
\frac{1024}{1} => 1024 || 6-0 => 6 || (1, 1+1) => (1,2) || \frac14+\frac14 => \frac12
1-\frac12 => \frac12 || 3 \cdot \frac16 => \frac12 || \sqrt3+\sqrt3 => 2\sqrt3
3 \cdot 4\pi => 12\pi || 16\pi-4\pi => 12\pi
number: 2^{10} => 1024 || 4^5 => 1024 || \sqrt{1048576} => 1024 || 32 \times 32 => 1024
number: (32)(32) => 1024 || 1000+24 => 1024 || 1024+0 => 1024 || 2048/2 => 1024
number: x = 2^{10} => 1024 || 3! \text{ ways} => 6
list: 1, 4/2 => 1,2
# Small numbers are told apart.
0.00000049 => \frac{\pi}{10^8} || 0.0000000314 => \frac{\pi}{10^8}
\frac{\pi}{10^8}+10^{-20} => \frac{\pi}{10^8} || x => x+10^{-20}
1.41421356237309504880168872420969807856967187537694 => \sqrt2
# What is not read whole equals nothing.
\ne \frac13 => \frac13 || \frac12\lor\frac13 => \frac13 || \sqrt2 is wrong => \sqrt2
\sqrt2 \text{ is wrong} => \sqrt2
number: 5... => 5 || 5 5 => 55 || 0{,}5 => 5 || 5 ? => 5
# Only a variable has a value, and arithmetic that is right.
6=5 => 5 || 2+4 = 5 => 5 || x = 2+4 = 5 => 5 || x = 6 = 5 => 5 || x+y = 5 => 5 || x \ne 5 => 5
x > 5 => 5 || x^2+2=0 => x^2+1=0
# Words are no units unless they are known to be.
2\pi h => 2\pi || 15 \text{ cm} => 15\mbox{ cm}^2 || 5.4 \text{ dollars} => 5.4 \text{ cents}
(\infty, 0] => (-\infty, 0] || (-\infty,2)\cup(3,4) => (-\infty, 2) \cup (3, \infty)
x<2 \text{ and } x>3 => (-\infty, 2) \cup (3, \infty)
\begin{vmatrix}1&0\\0&1\end{vmatrix} => \begin{pmatrix}1&0\\0&1\end{pmatrix}
\frac{n(n+1)}{2}+0.0001n => \frac{n(n+1)}{2} || \sqrt{x^2} => x
number: 5 quadrillion => 5 || at most 5 => 5 || 5 factorial => 5 || 5 is not the answer => 5
number: 5M => 5 || ~5 => 5
# A set of sets is none of their elements.
\{\{1,2,3\}\} => \{1,2,3\} || \{\emptyset\} => \emptyset || x = 2, y = 1 => (1,2)
y = 1, x = 2 => (1,2) || \frac{\pi}{6} \text{ degrees} => \frac{\pi}{6}
12 \text{ km} => 12 \text{ m} || -20^\circ F => -20^\circ\text{C} || x(x+1) = 5 => 5
3:30 a.m. => 3:30 p.m. || yadseuT => Tuesday
number: -(-5) => 5 || 0.4/2 => 0.2
# What only looks like it.
5\sqrt{2} \approx 7.05 => 5\sqrt2 || 14 \approx 10 => 14 || x \approx 14 => 14
14.444 \approx 14.4 => 14.4 || ==14 => 14 || Q(-5,2) => (2,-5) || R(2,-5) => Q(2,-5)
\text{Domain: } (2,5) => (2,5] || \langle 2,0,5 \rangle => (2,0,-5) || Without: 14 => 14
\mathbb{R}\setminus\{5\} => (-\infty,4)\cup(4,\infty)
45.678,90 => 45678.9 || 100^{100} => 10^{100} || f(y)=x-1 => f(x)=x-1
f(x) = Ce^{3x} => y=Ce^{3x} || 10^2 * 10 => 1000
number: (C) 13 => 12 || minus 17 => 17 || 1.25 million => 1.25 || 1.25 million or more => 1250000
number: 1.25 quadrillion => 1250000 || 3{,}75 => 375 || 18,00 => 18 || 1969 BC => 1969
number: before 1969 => 1969 || in 1970 => 1969 || 1.234 => 1234 || 1.234.56 => 1234567
number: 1'234'56 => 123456 || 6.02 x 10 23 => 6.02\times10^{23} || 0.\overline{9} => 0.9
number: 7 (or 8) => 7 || 7 (million) => 7
12,34,56 => 123456 || 12,34,567 => 12,34,568
(-\infty, 1] \text{ or } [3, \infty) => (-\infty,1)\cup[3,\infty)
(-\infty, 1], [3, \infty) => (-\infty,1]\cup[3,\infty)
(1,2) \text{ or } (3,4) => (1,2)\cup(3,4)
\mathbb{R} \setminus [1, 3] => (-\infty,1]\cup[3,\infty) || p \lor q => p, q
\text{all integers} => \mathbb{R} || \text{one solution} => \text{no solution}
\begin{cases} x = 3 \\ y = 4 \end{cases} => (4, 3)
\begin{cases} x, x>0 \\ 0, x<0 \end{cases} => x
[[1, 3], [2, 4]] => \begin{pmatrix}1&2\\3&4\end{pmatrix}
[1, 2, 3, 4] => \begin{pmatrix}1&2\\3&4\end{pmatrix} || (2, 1) => \begin{pmatrix}1\\2\end{pmatrix}
[1, 2] => \begin{pmatrix}1\\2\end{pmatrix}
\frac{\pi}{4}+k\pi, n\in\mathbb{Z} => \frac{\pi}{4}+k\pi || k\pi, k\in\{0,1\} => k\pi
k\pi \text{ for integer } k > 2 => k\pi
list: 18,00 € => 18 || 1'234'567,8,9 => 1234567, 8 || 3\mp\sqrt2 => 2+\sqrt3, 2-\sqrt3
text: 14 April 2024 => March 14, 2024 || March 14 => March 14, 2024 || 3/4/2024 => March 4, 2024
text: Friday, March 14, 2024 => March 14, 2024
"""


def rows(table: str) -> list[tuple[str, str, AnswerKind]]:
    """(answer, gold, kind) of each pair."""
    lines = [line for line in table.strip().split("\n") if not line.startswith("# ")]
    named = [re.fullmatch("(?:(number|list|text): )?(.*)", line) for line in lines]
    return [
        (*pair.split(" => "), match[1] or "math")
        for match in named
        for pair in match[2].split(" || ")
    ]


@pytest.mark.parametrize(("answer", "gold", "kind"), rows(RIGHT))
def test_equal_answers_are_right(
    answer: str, gold: str, kind: AnswerKind, checker: Checker
) -> None:
    for response in (rf"So \boxed{{{answer}}}.", f"Final answer: {answer}"):
        verdict = checker.check(response, problem(gold, kind))
        assert verdict.correct, verdict
        assert verdict.answer == answer


@pytest.mark.parametrize(("answer", "gold", "kind"), [*rows(WRONG), ("x" * 10**6, "4", "math")])
def test_different_answers_are_wrong(
    answer: str, gold: str, kind: AnswerKind, checker: Checker
) -> None:
    verdict = checker.check(f"<answer>{answer}</answer>", problem(gold, kind))
    assert not verdict.correct, verdict


@pytest.mark.parametrize(
    ("response", "gold", "right"),
    [
        (r"\boxed{5 \\}", "5", True),
        (r"$x = -2\boxed{\sqrt{5}}$", r"-2\sqrt5", True),
        (r"$x = -2\boxed{\sqrt{5}}$", r"2\sqrt5", False),
        (r"$\boxed{12}\pi$", r"12\pi", True),
        (r"$\boxed{12}\pi$", "12", False),
        (r"$\boxed{6}\sqrt{3}$", r"6\sqrt3", True),
        (r"$\boxed{12}i$", "12i", True),
        (r"$\boxed{12}i$", "12", False),
        (r"$\boxed{12}m$", "12", True),  # which may be meters
        (r"\boxed{12} is it.", "12", True),
        (r"\boxed{12} million", "12", False),
        (r"\boxed{12} million", "12000000", True),
        (r"\boxed{12} dozen eggs", "12", False),
        (r"\boxed{12} or 13", "12", False),
        (r"$\boxed{\frac12}$ or 0.5.", r"\frac12", True),
        (r"\boxed{12}\%", r"12\%", True),
        (r"\boxed{12}? No, 13.", "12", False),
    ],
)
def test_what_touches_a_box_belongs_to_it(
    response: str, gold: str, right: bool, checker: Checker
) -> None:
    assert checker.check(response, problem(gold)).correct == right


@pytest.mark.parametrize(
    ("question", "gold", "right"),
    [
        ("What percent of them is red?", "0.25", True), ("What percentage is it?", "25", True),
        ("Of 40% of them, what percent is red?", "25", True), ("What is the rate?", "25", True),
        ("What is the probability?", "25", True), ("What % is it?", "25", True),
        ("Give it as a percent. What is the share?", "0.25", True),
        ("What is 10% of 250?", "25", False), ("What is 50% of 0.5?", "0.25", False),
        ("What is 10 percent of 250?", "25", False), ("How old is she?", "25", False),
        ("It is 20% off. What is the new price?", "25", False),
        ("What is the probability?", "0.25", False),
    ],
)  # fmt: skip
def test_a_percentage_answers_a_question_for_one(
    question: str, gold: str, right: bool, checker: Checker
) -> None:
    asked = replace(problem(gold), question=question)
    assert checker.check(rf"\boxed{{{gold}\%}}", asked).correct == right


def test_percent_is_a_hundredth_only_where_the_data_set_says_so(checker: Checker) -> None:
    for answer, gold in ((r"50\%", "0.5"), ("0.5", r"50\%"), (r"50\%", "50"), ("50", r"50\%")):
        response = rf"\boxed{{{answer}}}"
        assert checker.check(response, problem(gold, percent=True)).correct
        assert checker.check(response, problem(gold)).correct == ("50" in (answer, gold))


@pytest.mark.parametrize(
    ("answer", "gold", "kind", "tolerance", "right"),
    [
        ("4.15", "4.2", "number", 0.1, True),
        # Both ends count. In floats 4.3 - 4.2 is more than 0.1, and 4.2 - 4.1 too.
        ("4.3", "4.2", "number", 0.1, True),
        ("4.1", "4.2", "number", 0.1, True),
        ("4.30001", "4.2", "number", 0.1, False),
        ("4.15", "4.2", "number", 0.0, False),
        (r"\frac{25}{6}", "4.2", "math", 0.1, True),  # 4.1666...
        ("x = 4.25", "4.2", "math", 0.1, True),
        (r"4.1 \times 10^{-5}", r"4.2\times 10^{-5}", "math", 1e-6, True),
        (r"4.1 \times 10^{-5}", r"4.2\times 10^{-5}", "math", 1e-7, False),
        ("(1.05, 2)", "(1, 2)", "math", 0.1, True),
        ("(1.05, 2.2)", "(1, 2)", "math", 0.1, False),
        ("2.95, 1.05", "1, 3", "list", 0.1, True),
        # Each of both is near the same one.
        ("1.05, 1.1", "1, 3", "list", 0.1, False),
        # What is no number has no distance.
        ("x + 1.05", "x + 1", "math", 0.1, False),
        ("4.15", "about 4.2", "text", 0.1, False),
    ],
)
def test_a_tolerance_is_a_distance_from_the_gold_value(
    answer: str, gold: str, kind: AnswerKind, tolerance: float, right: bool, checker: Checker
) -> None:
    asked = replace(problem(gold, kind), tolerance=tolerance)
    assert checker.check(rf"\boxed{{{answer}}}", asked).correct == right


def test_two_missing_answers_are_not_equal(checker: Checker) -> None:
    assert not checker.check("", problem("")).correct
    assert not checker.check(r"\boxed{ }", problem("")).correct
    assert not checker.check(r"\boxed{\text{ }}", problem(r"\text{ }")).correct


def test_the_rule_that_decided_is_named() -> None:
    checker = Checker()
    expected = {
        ("", "4"): "none",
        (r"\boxed{4}", "4"): "string",
        (r"\boxed{\ 4\ }", "4"): "string",
        (r"\boxed{4.0}", "4"): "rational",
        (r"\boxed{5}", "4"): "rational",
        (r"\boxed{2,1}", "1,2"): "list",
        (r"\boxed{9^{9^{9^9}}}", "4"): "refused",
    }
    for (response, gold), method in expected.items():
        assert checker.check(response, problem(gold)).method == method
    # Nothing of this was for algebra.
    assert checker.pool.alive == 0
    assert checker.check(r"\boxed{2x+2}", problem("2(1+x)")).method == "algebra"
    assert checker.pool.alive == 1
    assert checker.methods["rational"] == 2
    checker.close()
    assert checker.pool.alive == 0


def test_prose_and_garbage_against_a_number_start_no_process() -> None:
    checker = Checker()
    garbage = (
        "x",
        "1,2",
        "(1,2)",
        "\x00",
        "text",
        "2 + x",
        "4 = 2 + 2",
        "I think 2^2",
        "8 # 4 @ 9",
    )
    for answer in garbage:
        verdict = checker.check(f"Final answer: {answer}", problem("4", "number"))
        assert not verdict.correct
        assert verdict.method == "rational"
    assert checker.pool.alive == 0


def test_a_monster_is_stopped_and_the_next_answer_is_checked() -> None:
    checker = Checker(deadline_s=1.0)
    monster = r"\cos((10^{9999}+x)^{9999})"
    verdicts = checker.check_many(
        [(rf"\boxed{{{text}}}", problem("2+2x")) for text in (monster, "2(x+1)", "x+2")]
    )
    assert [verdict.method for verdict in verdicts] == ["timeout", "algebra", "algebra"]
    assert [verdict.correct for verdict in verdicts] == [False, True, False]
    assert checker.pool.timeouts == 1
    checker.close()
