"""Which formulas are equal: functions, floors, absolute values, matrices."""

import re

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

# Functions; floors, absolute values and roots; matrices and vectors.
DIFFERENT = r"""
f(g(x)) ~ g(f(x)) || T(n)=2T(n/2)+n ~ T(n)=T(n)+n || f(a+b) ~ f(a)+f(b) || f(2x) ~ 2f(x)
-f(x) ~ f(-x) || f'(g(x))g'(x) ~ f'(x)g'(g(x)) || E(X)+E(Y) ~ E(X+Y) || P(A)+P(B) ~ P(A+B)
f(n+1)-f(n) ~ f || f(2) ~ 2f || \frac{dy}{dx} ~ \frac{y}{x} || x\frac{dy}{dx}+y ~ 2y
\lceil n/2\rceil ~ \lfloor n/2\rfloor+1 || \lceil\log_2 n\rceil ~ \lfloor\log_2 n\rfloor+1
\lfloor n^2/4\rfloor ~ \lceil n^2/4\rceil-1 || \lfloor x\rfloor+1 ~ \lceil x\rceil
|x-100| ~ 100-x || |x+10| ~ x+10 || \sqrt{(x-50)^2} ~ 50-x
B^{-1}A^{-1} ~ A^{-1}B^{-1} || B^T A^T ~ A^T B^T || PDP^{-1} ~ D || A=PDP^{-1} ~ A=D || X^TX ~ XX^T
q\vec{v}\times\vec{B} ~ q\vec{B}\times\vec{v}
"""
EQUAL = r"""
f(x)=x^2+1 ~ f(x)=1+x^2 || f(x)+g(x) ~ g(x)+f(x) || f(2x) ~ f(x+x) || P(1+r)^n ~ (1+r)^nP
\frac{h(a+b)}{2} ~ \frac{(a+b)h}{2} || n(n+1)/2 ~ \frac{n^2+n}{2}
\frac{dy}{dx}=2x ~ \frac{dy}{dx}=x+x || \lceil (n+1)/2\rceil ~ \lfloor n/2\rfloor+1
\lfloor (n-1)/2\rfloor ~ \lceil n/2\rceil-1 || \lceil\log_2 (n+1)\rceil ~ \lfloor\log_2 n\rfloor+1
\lfloor x+1\rfloor ~ \lfloor x\rfloor+1
\lfloor n/2\rfloor\lfloor (n+1)/2\rfloor ~ \lfloor n^2/4\rfloor || \sqrt{x^2} ~ |x| || |x-y| ~ |y-x|
\sqrt{ab} ~ \sqrt a\sqrt b || x^{-1}y ~ y x^{-1} || PV=nRT ~ nRT=PV || A^TB+C ~ C+A^TB
2\vec{a}-3\vec{b} ~ -3\vec{b}+2\vec{a}
"""


def pairs(table: str) -> list[list[str]]:
    return [pair.split(" ~ ") for pair in re.split(r" \|\| |\n", table.strip())]


def states(checker: Checker, answer: str, gold: str) -> bool:
    return checker.check(rf"\boxed{{{answer}}}", Problem("p", "?", gold)).correct


@pytest.mark.parametrize(("gold", "answer"), pairs(DIFFERENT))
def test_different_formulas(checker: Checker, gold: str, answer: str) -> None:
    assert not states(checker, answer, gold)
    assert not states(checker, gold, answer)
    assert states(checker, gold, gold)


@pytest.mark.parametrize(("gold", "answer"), pairs(EQUAL))
def test_equal_formulas(checker: Checker, gold: str, answer: str) -> None:
    assert states(checker, answer, gold)
    assert states(checker, gold, answer)
