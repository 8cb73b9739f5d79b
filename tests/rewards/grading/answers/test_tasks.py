"""A question that asks for a form is not answered by an equal formula in another form, nor by the
question's own content, whatever does nothing is done to it."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from tests.rewards.grading.answers.tables import cases

TASKS = r"""
# The question restated.
Expand (x+2)(x-3). => x^2-x-6
- (x+2)(x-3) | (x-3)(x+2) | (x+2)(x-3)+0 | 1(x+2)(x-3) | \frac{2(x+2)(x-3)}{2}
- \frac{(x+2)(x-3)}{1} | (2+x)(-3+x) | -(x+2)(3-x) | (x+2)(x-3)+5-5
+ x^2-x-6 | -6-x+x^2 | x^2-(x+6)
Factor $6y^2+y-2$. => (2y-1)(3y+2)
- 6y^2+y-2 | -2+y+6y^2 | (6y^2+y-2)^1 | \frac{6y^2+y-2}{1} | 6y^2+0+y-2
+ (3y+2)(2y-1) | (1-2y)(-3y-2) | (2y-1) \cdot (2+3y)
Simplify $\frac{x^2-1}{x-1}$. => x+1
- \frac{x^2-1}{x-1} | (x^2-1)(x-1)^{-1} | (x^2-1)/(x-1)
+ x+1 | 1+x
Simplify $\frac{6x}{8}$. => \frac{3x}{4}
- \frac{6x}{8} | \frac{12x}{16} | \frac{6}{8}x | 6x/8
+ \frac{3x}{4} | \frac34 x | 0.75x
Simplify $2x+3x$. => 5x
- 2x+3x | 3x+2x | 3x+2x+0 | (2+3)x
+ 5x | x \cdot 5
Simplify $\sqrt{72}$. => 6\sqrt2
- \sqrt{72} | 1\sqrt{72} | 72^{1/2} | 72^{0.5} | \frac{5\sqrt{72}}{5} | 0+\sqrt{72}
+ 6\sqrt{2} | \sqrt2 \cdot 6 | 6 \cdot 2^{1/2}
Rationalize the denominator of $\frac{1}{\sqrt2-1}$. => \sqrt2+1
- \frac{1}{\sqrt2-1} | (\sqrt2-1)^{-1} | \frac{2}{2(\sqrt2-1)} | \frac{1}{-1+\sqrt2}
+ 1+\sqrt2 | \sqrt{2}+1
Solve 2x+3=11. => x=4
- 2x+3=11 | 11=2x+3 | 2x+3+0=11 | 2x=8 | x-4=0 | \frac{2x+3}{1}=11
+ x=4 | 4 | 4=x | x = 4.0
Solve $x/3=7$. => x=21
- x/3=7 | \frac13 x=7 | 7=x/3
+ x=21 | 21
Solve $5-x=1$. => x=4
- 5-x=1 | -x+5=1 | 1=5-x
+ x=4 | 4
Write $3x+y=5$ in slope-intercept form. => y=-3x+5
- 3x+y=5 | y+3x=5 | 5=3x+y | 3x+y-5=0 | 6x+2y=10 | 3x+y+0=5
+ y=-3x+5 | y=5-3x | -3x+5=y
Write $x^2+y^2-6x+2y=15$ in the form $(x-h)^2+(y-k)^2=r^2$. => (x-3)^2+(y+1)^2=25
- x^2+y^2-6x+2y=15 | x^2-6x+y^2+2y-15=0 | 2x^2+2y^2-12x+4y=30
+ (x-3)^2+(y+1)^2=25 | (y+1)^2+(x-3)^2=5^2 | 25=(x-3)^2+(y+1)^2
Expand $(x-3)^2+(y+1)^2=25$. => x^2+y^2-6x+2y=15
- (x-3)^2+(y+1)^2=25 | (y+1)^2+(x-3)^2=25 | (x-3)^2+(y+1)^2-25=0
+ x^2+y^2-6x+2y=15 | x^2+y^2-6x+2y-15=0
Factor $9x^2-27y^3$. => 9(x^2-3y^3)
- 9x^2-3^3y^3 | (3x)^2-27y^3 | 3^2x^2-27y^3 | (-3x)^2-(3y)^3
+ 9(x^2-3y^3) | 3^2(x^2-3y^3) | -9(3y^3-x^2)
Factor $x^3-27$ completely. => (x-3)(x^2+3x+9)
- x^3-3^3 | -(3^3-x^3) | (-x)^3(-1)-3^3
+ (x-3)(x^2+3x+9) | (x-3)(x^2+3x+3^2)
Write $y-3=2(x-1)$ in slope-intercept form. => y=2x+1
- 2x-y+1=0 | 2x-y=-1 | 2y=4x+2 | y-1=2x | y-3=2(x-1)
+ y=2x+1 | y=1+2x | 2x+1=y | 2x+1
Solve $3x-4=y-2$ for $y$. => y=3x-2
- 3x-y-2=0 | y+2=3x | 3x-4=y-2
+ y=3x-2 | y=-2+3x | 3x-2=y
Write 84/168 in lowest terms. => \frac12
- 84/168 | \frac{84}{168} | 168/336 | \dfrac{42}{84}
+ 1/2 | \frac{1}{2} | 0.5
Express 0.375 as a common fraction. => \frac38
- 0.375 | .3750
+ 3/8 | \frac38
Convert 13/4 to a mixed number. => 3\frac14
- 13/4 | \frac{13}{4} | 26/8 | 3.25
+ 3\frac{1}{4} | 3 1/4
Write 45,000 in scientific notation. => 4.5\times10^4
- 45,000 | 45000 | 45000.0 | 45000\times10^0
+ 4.5 \times 10^{4} | 4.5e4 | 4.5·10⁴
math: Write $\frac58$ as a decimal. => 0.625
- 5/8 | 10/16
+ 0.625
# The answer in another form.
Factor $2x^3-18x$ completely. => 2x(x-3)(x+3)
- 2x(x^2-9) | x(2x^2-18) | 2x^3-18x | 2(x^3-9x)
+ 2x(x+3)(x-3) | (2x)(3+x)(-3+x) | -2x(3-x)(x+3) | x(2x-6)(x+3)
Factorise $x^2-2x-15$. => (x-5)(x+3)
- x(x-2)-15 | (x-1)^2-16 | x^2-15-2x
+ (x+3)(x-5) | (5-x)(-x-3)
Find the greatest common factor. => 6x^2y
+ 6yx^2 | 6x \cdot xy
Expand $(x+6)(x-2)$. => x^2+4x-12
- x(x-2)+6(x-2) | x^2-2x+6x-12 | (x+2)^2-16 | (x+6)(x-2)
+ x^2+4x-12 | -12+x^2+4x
Expand and simplify $2(x+3)-5(x-1)$. => -3x+11
- 2x+6-5x+5 | 2x+6-5(x-1) | 2(x+3)-5x+5
+ 11-3x | -(3x-11)
Simplify $\frac{x^2-16}{x+4}$. => x-4
- \frac{x^2}{x+4}-\frac{16}{x+4} | \frac{2x^2-32}{2x+8} | x-3-1 | 2(x-2)-x
+ -4+x | x-4
What polynomial do you get when you multiply $(x^2+1)$ by $(x^2-4)$? => x^4-3x^2-4
- (x^2+1)(x^2-4) | x^2(x^2-4)+x^2-4
+ -4-3x^2+x^4
Express $\sqrt{300}$ in simplest radical form. => 10\sqrt{3}
- 2\sqrt{75} | \sqrt{4}\sqrt{75} | 5\sqrt{12}
+ 10 \sqrt 3 | \sqrt{3} \cdot 10
Write $\frac{\sqrt{7}}{\sqrt{3}}$ with a rational denominator. => \frac{\sqrt{21}}{3}
- \sqrt{\frac{7}{3}} | \frac{\sqrt7}{\sqrt3}
+ \frac13\sqrt{21}
Find the factored form of $y^2+10y+25$. => (y+5)^2
- y(y+10)+25
+ (y+5)(5+y)
Express 0.625 as a common fraction. => \frac58
- \frac{625}{1000} | 0.625
+ 5/8
Simplify $\sqrt{x^3}$. => x^{3/2}
+ x\sqrt{x} | x^{1.5}
Simplify $x^{-2}$. => x^{-2}
+ \frac{1}{x^2}
Simplify $\frac{\tan x}{\sin x}$. => \sec x
+ \frac{1}{\cos x}
Rationalize the denominator of $\frac{3}{\sqrt5+2}$. => 3\sqrt5-6
- \frac{6}{2\sqrt5+4} | 3(\sqrt5+2)^{-1}
+ -6+3\sqrt{5} | 3(\sqrt5-2) | 3 \cdot 5^{1/2}-6
Write $y+1=3(x-2)$ in standard form $Ax+By=C$. => 3x-y=7
- y=3x-7 | y+1=3x-6 | 3x=y+7 | y+1=3(x-2)
+ y-3x=-7 | 3x-y-7=0 | 7=3x-y | 6x-2y=14
Write $y=x^2-6x+5$ in vertex form. => y=(x-3)^2-4
- y=(x-1)(x-5) | y=x(x-6)+5 | y=x^2-6x+5
+ y=-4+(3-x)^2 | y=(x-3)^2-4
Write the line in point-slope form. => y-3=2(x+1)
- y-3=2x+2 | y=2x+5
+ 2(x+1)=y-3 | y-3=2(1+x)
Write the circle in general form. => x^2+y^2+2x-8y+8=0
- (x+1)^2+(y-4)^2=9 | (x+1)^2+(y-4)^2-9=0
+ x^2+y^2+2x-8y=-8
Write $x^2+10x+7$ in the form $(x+a)^2+b$. => (x+5)^2-18
- x^2+10x+25-18 | x(x+10)+7
+ -18+(5+x)^2 | (-x-5)^2-18
Simplify $(3x^2y)^3$. => 27x^6y^3
- (3x^2y)^2 \cdot 3x^2y | 27(x^2)^3y^3 | 3^3x^6y^3
+ 27y^3x^6 | y^3 \cdot 27x^6
Simplify $\ln e^{5x}$. => 5x
- 5x\ln e | \sqrt{25}x
+ x \cdot 5
Simplify $\sqrt{2x^2}$ for $x>0$. => \sqrt2 x
+ x \cdot 2^{1/2} | x\sqrt{2}
Express $\frac{1}{x(x+1)}$ in partial fractions. => \frac{1}{x}-\frac{1}{x+1}
- \frac{1}{x^2+x} | \frac{x+1-x}{x^2+x}
+ -\frac{1}{1+x}+\frac{1}{x}
Write $\frac{1}{x}+\frac{1}{y}$ as a single fraction. => \frac{x+y}{xy}
- \frac{y}{xy}+\frac{x}{xy}
+ \frac{y+x}{yx}
Write $y=\frac{2}{3}x-4$ in standard form. => 2x-3y=12
- 3y=2x-12 | y=\frac{2}{3}x-4 | 3y-2x+y=y-12
+ 2x-3y-12=0 | -2x+3y=-12 | 0=12-2x+3y
Distribute: $5(2x-y+3)$. => 10x-5y+15
- 5(2x-y)+15 | 5(2x-y+3) | 10x+5(3-y)
+ 15+10x-5y
Combine like terms: $6w-2+3w+9$. => 9w+7
- 9w-2+9 | 9w+9-2+0 | 6w+3w+7
+ 7+9w
Find the prime factorization of 84. => 2^2 \cdot 3 \cdot 7
- 4 \cdot 21 | 2^2 \cdot 21 | 2 \cdot 6 \cdot 7
+ 7 \cdot 3 \cdot 2^2 | 2 \times 2 \times 3 \times 7
Simplify $\sqrt{20x^2}$ for $x>0$. => 2x\sqrt5
- \sqrt{20}x | x\sqrt{4 \cdot 5}
+ 2\sqrt{5}x | 2x \cdot 5^{1/2}
Simplify $\sqrt[3]{54}$. => 3\sqrt[3]{2}
- \sqrt[3]{54}
+ 3 \cdot 2^{1/3}
Write $2x-7y=14$ in slope-intercept form. => y=\frac{2}{7}x-2
- x=\frac{7}{2}y+7
+ y=-2+\frac{2x}{7}
Solve $I=Prt$ for $r$. => r=\frac{I}{Pt}
- P=\frac{I}{rt}
+ r=\frac{I}{tP}
Write $\frac{5}{2-i}$ in the form $a+bi$. => 2+i
- \frac{5(2+i)}{5} | \frac{5}{2-i}
+ i+2
Find $\frac{dy}{dx}$. => 2x
- \frac{dx}{dy}=2x
+ \frac{dy}{dx}=2x
Expand $(a+2b)^2$. => a^2+4ab+4b^2
- a^2+4ab+(2b)^2 | a^2+4b(a+b)
+ 4b^2+4ba+a^2
Write $y=3(x-1)^2+2$ in standard form. => y=3x^2-6x+5
- y=3(x^2-2x+1)+2 | y=3x(x-2)+5
+ y=5-6x+3x^2 | 3x^2-6x+5
# No form is asked for.
By what factor does it grow? => (a-1)(a+1)
+ a^2-1
Which polynomial is it? => (x-5)(x+3)
+ x(x-2)-15 | x^2-2x-15
Its degree is written in the form n. Which is it? => (x-1)^2
+ x^2-2x+1
Which line is it? => 3x-y=7
+ y=3x-7
# Numbers.
Write $\frac{23}{4}$ as a mixed number. => 5\frac34
- 5.75 | 23/4
+ 5\frac{3}{4} | 5 3/4
Write 6,300,000 in scientific notation. => 6.3\times10^6
- 63\times10^5 | 0.63\times10^7 | 6300000
+ 6.3\cdot10^{6} | 6.3e6
Express 0.45 as a fraction in lowest terms. => \frac{9}{20}
- \frac{45}{100} | 18/40 | 0.45
+ 9/20
Write $0.\overline{3}$ as a fraction. => \frac13
- 0.\overline{3}
+ 1/3 | 2/6
Write $45\%$ as a fraction in simplest form. => \frac{9}{20}
- \frac{45}{100}
+ 9/20
Express 0.45 as a fraction. => \frac{9}{20}
- 0.450
+ 45/100 | 9/20
math: Write 3/8 as a decimal. => 0.375
- \frac{6}{16} | \frac38
+ 0.3750 | .375
math: Half of 3/4 as a decimal? => 0.375
+ 0.375 | 3/8
Simplify $\sqrt{12}$. => 2\sqrt{3}
- \sqrt{12}
How long is the side? => 2\sqrt{3}
+ \sqrt{12}
Let $p(x) = (2x-3)(3x+1)$. Expand it. => 6x^2-7x-3
- (2x-3)(3x+1) | (3x+1) \cdot (2x-3) | \left(-3+2x\right)(3x+1)
+ -3-7x+6x^2
# Gold is of the question's form, and no other is asked for.
Is it $2\sqrt3$? => 2\sqrt{3}
+ 2\sqrt3
Is it 7? => 7
+ 7
Simplify $x+1$ if you can. => x+1
+ 1+x
Is $2\sqrt3$ more than 3? Simplify $2\sqrt3$. => 2\sqrt3
+ \sqrt3\cdot2
Which is it, $\frac{x}{2}$ or $x$? => \frac12 x
+ \frac{x}{2}
Which line is parallel to $y=2x$: $y=2x+1$ or $y=x$? => y=2x+1
+ y=1+2x
The line $y=2x$ moves up by 1. Which line is it? => y=2x+1
+ 2x-y+1=0
Write $x^2-9$ as a difference of two squares. => x^2-3^2
+ -3^2+x^2
Which polynomial is $(2x+1)^2-4x$? => 4x^2+1
+ (2x)^2+1
Which line goes through (0, 1) with slope 2? => y=2x+1
+ 2x-y+1=0
Write the line in standard form, not in slope-intercept form. => 2x-y=-1
+ y-2x=1
math: Half of them, 0.5, are red. Express your answer as a decimal. => 0.5
+ \frac12
math: A third of 3/4 and twice 1/4: how much? => 0.75
+ 3/4
math: He drank 70% of it. What is that, as a percentage? => 70
+ 70%
math: Write 1/2 + 1/4 as one number. => 0.75
+ 3/4
"""


@pytest.mark.parametrize(("problem", "answer", "right"), cases(TASKS))
def test_the_form_that_is_asked_for_counts(
    problem: Problem, answer: str, right: bool, checker: Checker
) -> None:
    assert checker.check(rf"\boxed{{{answer}}}", problem).correct == right
