"""A question that asks for a form is not answered by an equal formula in another."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

TASKS = (
    # (question, gold, in another form, answers)
    (
        "Factor $2x^3-18x$ completely.",
        "2x(x-3)(x+3)",
        ("2x(x^2-9)", "x(2x^2-18)", "2x^3-18x", "2(x^3-9x)"),
        ("2x(x+3)(x-3)", "(2x)(3+x)(-3+x)", "-2x(3-x)(x+3)", "x(2x-6)(x+3)"),
    ),
    (
        "Factorise $x^2-2x-15$.",
        "(x-5)(x+3)",
        ("x(x-2)-15", "(x-1)^2-16", "x^2-15-2x"),
        ("(x+3)(x-5)", "(5-x)(-x-3)"),
    ),
    ("Find the greatest common factor.", "6x^2y", (), ("6yx^2", r"6x \cdot xy")),
    (
        "Expand $(x+6)(x-2)$.",
        "x^2+4x-12",
        ("x(x-2)+6(x-2)", "x^2-2x+6x-12", "(x+2)^2-16", "(x+6)(x-2)"),
        ("x^2+4x-12", "-12+x^2+4x"),
    ),
    (
        "Expand and simplify $2(x+3)-5(x-1)$.",
        "-3x+11",
        ("2x+6-5x+5", "2x+6-5(x-1)", "2(x+3)-5x+5"),
        ("11-3x", "-(3x-11)"),
    ),
    (
        r"Simplify $\frac{x^2-16}{x+4}$.",
        "x-4",
        (r"\frac{x^2}{x+4}-\frac{16}{x+4}", r"\frac{2x^2-32}{2x+8}", "x-3-1", "2(x-2)-x"),
        ("-4+x", "x-4"),
    ),
    (
        "What polynomial do you get when you multiply $(x^2+1)$ by $(x^2-4)$?",
        "x^4-3x^2-4",
        ("(x^2+1)(x^2-4)", "x^2(x^2-4)+x^2-4"),
        ("-4-3x^2+x^4",),
    ),
    (
        r"Express $\sqrt{300}$ in simplest radical form.",
        r"10\sqrt{3}",
        (r"2\sqrt{75}", r"\sqrt{4}\sqrt{75}", r"5\sqrt{12}"),
        (r"10 \sqrt 3", r"\sqrt{3} \cdot 10"),
    ),
    (
        r"Write $\frac{\sqrt{7}}{\sqrt{3}}$ with a rational denominator.",
        r"\frac{\sqrt{21}}{3}",
        (r"\sqrt{\frac{7}{3}}", r"\frac{\sqrt7}{\sqrt3}"),
        (r"\frac13\sqrt{21}",),
    ),
    ("Find the factored form of $y^2+10y+25$.", "(y+5)^2", ("y(y+10)+25",), ("(y+5)(5+y)",)),
    ("Express 0.625 as a common fraction.", r"\frac58", (r"\frac{625}{1000}", "0.625"), ("5/8",)),
    (r"Simplify $\sqrt{x^3}$.", r"x^{3/2}", (), (r"x\sqrt{x}", r"x^{1.5}")),
    ("Simplify $x^{-2}$.", "x^{-2}", (), (r"\frac{1}{x^2}",)),
    (r"Simplify $\frac{\tan x}{\sin x}$.", r"\sec x", (), (r"\frac{1}{\cos x}",)),
    (
        r"Rationalize the denominator of $\frac{3}{\sqrt5+2}$.",
        r"3\sqrt5-6",
        (r"\frac{6}{2\sqrt5+4}", r"3(\sqrt5+2)^{-1}"),
        (r"-6+3\sqrt{5}", r"3(\sqrt5-2)", r"3 \cdot 5^{1/2}-6"),
    ),
    (
        "Write $y+1=3(x-2)$ in standard form $Ax+By=C$.",
        "3x-y=7",
        ("y=3x-7", "y+1=3x-6", "3x=y+7", "y+1=3(x-2)"),
        ("y-3x=-7", "3x-y-7=0", "7=3x-y", "6x-2y=14"),
    ),
    (
        "Write $y=x^2-6x+5$ in vertex form.",
        "y=(x-3)^2-4",
        ("y=(x-1)(x-5)", "y=x(x-6)+5", "y=x^2-6x+5"),
        ("y=-4+(3-x)^2", "y=(x-3)^2-4"),
    ),
    (
        "Write the line in point-slope form.",
        "y-3=2(x+1)",
        ("y-3=2x+2", "y=2x+5"),
        ("2(x+1)=y-3", "y-3=2(1+x)"),
    ),
    (
        "Write the circle in general form.",
        "x^2+y^2+2x-8y+8=0",
        ("(x+1)^2+(y-4)^2=9", "(x+1)^2+(y-4)^2-9=0"),
        ("x^2+y^2+2x-8y=-8",),
    ),
    (
        "Write $x^2+10x+7$ in the form $(x+a)^2+b$.",
        "(x+5)^2-18",
        ("x^2+10x+25-18", "x(x+10)+7"),
        ("-18+(5+x)^2", "(-x-5)^2-18"),
    ),
    (
        "Simplify $(3x^2y)^3$.",
        "27x^6y^3",
        (r"(3x^2y)^2 \cdot 3x^2y", "27(x^2)^3y^3", "3^3x^6y^3"),
        ("27y^3x^6", r"y^3 \cdot 27x^6"),
    ),
    (r"Simplify $\ln e^{5x}$.", "5x", (r"5x\ln e", r"\sqrt{25}x"), (r"x \cdot 5",)),
    (r"Simplify $\sqrt{2x^2}$ for $x>0$.", r"\sqrt2 x", (), (r"x \cdot 2^{1/2}", r"x\sqrt{2}")),
    (
        r"Express $\frac{1}{x(x+1)}$ in partial fractions.",
        r"\frac{1}{x}-\frac{1}{x+1}",
        (r"\frac{1}{x^2+x}", r"\frac{x+1-x}{x^2+x}"),
        (r"-\frac{1}{1+x}+\frac{1}{x}",),
    ),
    (
        r"Write $\frac{1}{x}+\frac{1}{y}$ as a single fraction.",
        r"\frac{x+y}{xy}",
        (r"\frac{y}{xy}+\frac{x}{xy}",),
        (r"\frac{y+x}{yx}",),
    ),
    (
        r"Write $y=\frac{2}{3}x-4$ in standard form.",
        "2x-3y=12",
        ("3y=2x-12", r"y=\frac{2}{3}x-4", "3y-2x+y=y-12"),
        ("2x-3y-12=0", "-2x+3y=-12", "0=12-2x+3y"),
    ),
    (
        "Distribute: $5(2x-y+3)$.",
        "10x-5y+15",
        ("5(2x-y)+15", "5(2x-y+3)", "10x+5(3-y)"),
        ("15+10x-5y",),
    ),
    (
        "Combine like terms: $6w-2+3w+9$.",
        "9w+7",
        ("9w-2+9", "9w+9-2+0", "6w+3w+7"),
        ("7+9w",),
    ),
    (
        "Find the prime factorization of 84.",
        r"2^2 \cdot 3 \cdot 7",
        (r"4 \cdot 21", r"2^2 \cdot 21", r"2 \cdot 6 \cdot 7"),
        (r"7 \cdot 3 \cdot 2^2", r"2 \times 2 \times 3 \times 7"),
    ),
    (
        r"Simplify $\sqrt{20x^2}$ for $x>0$.",
        r"2x\sqrt5",
        (r"\sqrt{20}x", r"x\sqrt{4 \cdot 5}"),
        (r"2\sqrt{5}x", r"2x \cdot 5^{1/2}"),
    ),
    (r"Simplify $\sqrt[3]{54}$.", r"3\sqrt[3]{2}", (r"\sqrt[3]{54}",), (r"3 \cdot 2^{1/3}",)),
    (
        "Write $2x-7y=14$ in slope-intercept form.",
        r"y=\frac{2}{7}x-2",
        (r"x=\frac{7}{2}y+7",),
        (r"y=-2+\frac{2x}{7}",),
    ),
    ("Solve $I=Prt$ for $r$.", r"r=\frac{I}{Pt}", (r"P=\frac{I}{rt}",), (r"r=\frac{I}{tP}",)),
    (
        r"Write $\frac{5}{2-i}$ in the form $a+bi$.",
        "2+i",
        (r"\frac{5(2+i)}{5}", r"\frac{5}{2-i}"),
        ("i+2",),
    ),
    (r"Find $\frac{dy}{dx}$.", "2x", (r"\frac{dx}{dy}=2x",), (r"\frac{dy}{dx}=2x",)),
    (
        "Expand $(a+2b)^2$.",
        "a^2+4ab+4b^2",
        ("a^2+4ab+(2b)^2", "a^2+4b(a+b)"),
        ("4b^2+4ba+a^2",),
    ),
    (
        "Write $y=3(x-1)^2+2$ in standard form.",
        "y=3x^2-6x+5",
        ("y=3(x^2-2x+1)+2", "y=3x(x-2)+5"),
        ("y=5-6x+3x^2", "3x^2-6x+5"),
    ),
    # No form is asked for.
    ("By what factor does it grow?", "(a-1)(a+1)", (), ("a^2-1",)),
    ("Which polynomial is it?", "(x-5)(x+3)", (), ("x(x-2)-15", "x^2-2x-15")),
    ("Its degree is written in the form n. Which is it?", "(x-1)^2", (), ("x^2-2x+1",)),
    ("Which line is it?", "3x-y=7", (), ("y=3x-7",)),
    # Numbers.
    (
        "Write $\\frac{23}{4}$ as a mixed number.",
        r"5\frac34",
        ("5.75", "23/4"),
        (r"5\frac{3}{4}", "5 3/4"),
    ),
    (
        "Write 6,300,000 in scientific notation.",
        r"6.3\times10^6",
        (r"63\times10^5", r"0.63\times10^7", "6300000"),
        (r"6.3\cdot10^{6}", "6.3e6"),
    ),
    (
        "Express 0.45 as a fraction in lowest terms.",
        r"\frac{9}{20}",
        (r"\frac{45}{100}", "18/40", "0.45"),
        ("9/20",),
    ),
    (r"Write $0.\overline{3}$ as a fraction.", r"\frac13", (r"0.\overline{3}",), ("1/3", "2/6")),
    (
        r"Write $45\%$ as a fraction in simplest form.",
        r"\frac{9}{20}",
        (r"\frac{45}{100}",),
        ("9/20",),
    ),
    ("Express 0.45 as a fraction.", r"\frac{9}{20}", ("0.450",), ("45/100", "9/20")),
    ("Write 3/8 as a decimal.", "0.375", (r"\frac{6}{16}", r"\frac38"), ("0.3750", ".375")),
    ("Half of 3/4 as a decimal?", "0.375", (), ("0.375", "3/8")),
)


@pytest.fixture(scope="module")
def checker():
    checker = Checker(deadline_s=20.0)
    yield checker
    checker.close()


@pytest.mark.parametrize(("question", "gold", "wrong", "right"), TASKS)
def test_the_form_that_is_asked_for_counts(
    question: str, gold: str, wrong: tuple[str, ...], right: tuple[str, ...], checker: Checker
) -> None:
    asked = Problem("p", question, gold)
    requests = [(rf"\boxed{{{answer}}}", asked) for answer in (*wrong, *right)]
    paid = [verdict.answer for verdict in checker.check_many(requests) if verdict.correct]
    assert paid == list(right)


@pytest.mark.parametrize("text", ["x/" * 250 + "x", "(x+1)" * 100, "(" * 8 + "x+1" + ")^2" * 8])
def test_a_hostile_formula_costs_little(text: str, checker: Checker) -> None:
    for question in ("Factor it.", "Expand it.", "Simplify it.", "Write it in vertex form."):
        assert not checker.check(rf"\boxed{{{text}}}", Problem("p", question, "x(x-2)")).correct
