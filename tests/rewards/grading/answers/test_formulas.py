"""Which formulas are equal: functions, floors, absolute values, matrices."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

APPLIED = [
    ("f(g(x))", "g(f(x))"),
    ("T(n)=2T(n/2)+n", "T(n)=T(n)+n"),
    ("f(a+b)", "f(a)+f(b)"),
    ("f(2x)", "2f(x)"),
    ("-f(x)", "f(-x)"),
    ("f'(g(x))g'(x)", "f'(x)g'(g(x))"),
    ("E(X)+E(Y)", "E(X+Y)"),
    ("P(A)+P(B)", "P(A+B)"),
    ("f(n+1)-f(n)", "f"),
    ("f(2)", "2f"),
    (r"\frac{dy}{dx}", r"\frac{y}{x}"),
    (r"x\frac{dy}{dx}+y", "2y"),
]
ROUNDED = [
    (r"\lceil n/2\rceil", r"\lfloor n/2\rfloor+1"),
    (r"\lceil\log_2 n\rceil", r"\lfloor\log_2 n\rfloor+1"),
    (r"\lfloor n^2/4\rfloor", r"\lceil n^2/4\rceil-1"),
    (r"\lfloor x\rfloor+1", r"\lceil x\rceil"),
    ("|x-100|", "100-x"),
    ("|x+10|", "x+10"),
    (r"\sqrt{(x-50)^2}", "50-x"),
]
ORDERED = [
    ("B^{-1}A^{-1}", "A^{-1}B^{-1}"),
    ("B^T A^T", "A^T B^T"),
    ("PDP^{-1}", "D"),
    ("A=PDP^{-1}", "A=D"),
    ("X^TX", "XX^T"),
    (r"q\vec{v}\times\vec{B}", r"q\vec{B}\times\vec{v}"),
]
EQUAL = [
    ("f(x)=x^2+1", "f(x)=1+x^2"),
    ("f(x)+g(x)", "g(x)+f(x)"),
    ("f(2x)", "f(x+x)"),
    ("P(1+r)^n", "(1+r)^nP"),
    (r"\frac{h(a+b)}{2}", r"\frac{(a+b)h}{2}"),
    ("n(n+1)/2", r"\frac{n^2+n}{2}"),
    (r"\frac{dy}{dx}=2x", r"\frac{dy}{dx}=x+x"),
    (r"\lceil (n+1)/2\rceil", r"\lfloor n/2\rfloor+1"),
    (r"\lfloor (n-1)/2\rfloor", r"\lceil n/2\rceil-1"),
    (r"\lceil\log_2 (n+1)\rceil", r"\lfloor\log_2 n\rfloor+1"),
    (r"\lfloor x+1\rfloor", r"\lfloor x\rfloor+1"),
    (r"\lfloor n/2\rfloor\lfloor (n+1)/2\rfloor", r"\lfloor n^2/4\rfloor"),
    (r"\sqrt{x^2}", "|x|"),
    ("|x-y|", "|y-x|"),
    (r"\sqrt{ab}", r"\sqrt a\sqrt b"),
    ("x^{-1}y", "y x^{-1}"),
    ("PV=nRT", "nRT=PV"),
    ("A^TB+C", "C+A^TB"),
    (r"2\vec{a}-3\vec{b}", r"-3\vec{b}+2\vec{a}"),
]


def states(checker: Checker, answer: str, gold: str) -> bool:
    return checker.check(rf"\boxed{{{answer}}}", Problem("p", "?", gold)).correct


@pytest.mark.parametrize(("gold", "answer"), [*APPLIED, *ROUNDED, *ORDERED])
def test_different_formulas(checker: Checker, gold: str, answer: str) -> None:
    assert not states(checker, answer, gold)
    assert not states(checker, gold, answer)
    assert states(checker, gold, gold)


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_equal_formulas(checker: Checker, gold: str, answer: str) -> None:
    assert states(checker, answer, gold)
    assert states(checker, gold, answer)
