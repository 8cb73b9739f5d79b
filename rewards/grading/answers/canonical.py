r"""One form for formulas that differ by steps that do nothing, and how many such steps there are.

A formula becomes a coefficient times powers: ``\sqrt{72}``, ``72^{1/2}``, ``1\sqrt{72}`` and
``\frac{3\sqrt{72}}{3}`` are all 1 times 72 to the power 1/2. Terms come in one order, like terms
are put together. Nothing is expanded, so that ``(x+2)(x-3)`` and ``x^2-x-6`` stay two forms.
Powers of numbers are computed in a sum with letters only: ``(2x)^2-3^2`` has the form of
``4x^2-9``, and ``2^{10}`` not that of ``4^5``.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from coterie.rewards.grading.answers.formula import LEAVES, Formula

Powers = tuple[tuple[Any, Fraction], ...]
"""(base, exponent) in one order; a base is a leaf, a function, a sum or a power."""
Form = tuple[Fraction, Powers]
"""A coefficient and what it multiplies."""

_NOTHING: Powers = ()
_LARGEST = 64
"""Exponents of numbers, and their bits, up to which powers are computed."""


@lru_cache(maxsize=8192)
def canonical(formula: Formula) -> tuple[Form, int]:
    """(form, steps): two formulas of one form differ by trivial steps only; ``steps`` counts those
    that the formula leaves to do, such as a zero to add or a factor to cancel.

    Example: ``0 + x/1`` has the form of ``x`` and 2 steps.
    """
    walk = _Walk(computes=True)
    return walk.form(formula), walk.steps


@lru_cache(maxsize=8192)
def trivial_steps(formula: Formula) -> int:
    """Steps that :func:`canonical` takes, but for powers of numbers in sums with letters."""
    walk = _Walk()
    walk.form(formula)
    return walk.steps


def difference(equation: Formula) -> Powers | tuple[Form, ...]:
    """The form of an equation, up to a number by which both sides are multiplied."""
    _, left, right = equation
    terms = _terms(_Walk().form(("sum", left, ("negative", right))))
    return tuple((coefficient / terms[0][0], powers) for coefficient, powers in terms)


def arrangement(equation: Formula) -> frozenset[tuple[Form, ...]]:
    """What stands on the two sides of an equation, up to a number and to which comes first."""
    _, left, right = equation
    walk = _Walk()
    lead = _terms(walk.form(("sum", left, ("negative", right))))[:1]
    scale = abs(lead[0][0]) if lead else Fraction(1)
    sides = (_terms(walk.form(side)) for side in (left, right))
    scaled = [tuple((number / scale, powers) for number, powers in side) for side in sides]
    turned = [tuple((-number, powers) for number, powers in side) for side in scaled]
    return frozenset(min((scaled, turned), key=lambda pair: repr(sorted(pair, key=repr))))


def _terms(form: Form) -> tuple[Form, ...]:
    """The terms of a form that is a sum; another form is its own only term, 0 has none."""
    coefficient, powers = form
    if not coefficient:
        return ()
    if len(powers) == 1 and powers[0][0][0] == "sum" and powers[0][1] == 1:
        return tuple((coefficient * number, rest) for number, rest in powers[0][0][1])
    return (form,)


def _inverse(form: Form) -> Form | None:
    number, powers = form
    return (1 / number, tuple((base, -exponent) for base, exponent in powers)) if number else None


def _has_letters(form: Form) -> bool:
    """Whether it is more than a number and powers of numbers."""
    return any(base[0] != "power" or len(base) > 2 or base[1][1] for base, _ in form[1])


def _may_compute(base: Any, exponent: Fraction) -> bool:
    if base[0] != "power" or len(base) > 2 or exponent.denominator > 1:
        return False
    number = base[1][0]
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    return number != 0 and max(bits, abs(exponent)) <= _LARGEST


def _opaque(kind: str, *arguments: Any) -> Form:
    return Fraction(1), (((kind, *arguments), Fraction(1)),)


class _Walk:
    """One pass over a formula that counts its trivial steps.

    If ``computes``, powers of numbers are computed in sums with letters.
    """

    def __init__(self, *, computes: bool = False) -> None:
        self.steps = 0
        self.computes = computes

    def form(self, formula: Formula) -> Form:
        """The form of a formula."""
        kind, *inside = formula
        if kind == "number":
            # A fraction that is not in lowest terms carries its divisor.
            self.steps += len(formula) > 3
            return formula[1], _NOTHING
        if kind in LEAVES:
            return _opaque(kind, formula[1])
        if kind == "negative":
            number, powers = self.form(inside[0])
            return -number, powers
        if kind == "sum":
            return self.sum(inside)
        if kind == "product":
            forms = [self.form(part) for part in inside]
            self.steps += max(0, sum(part[0] == "number" for part in inside) - 1)
            self.steps += sum(part[:2] == ("number", 1) for part in inside)
            return self.multiplied(forms)
        if kind == "quotient":
            return self.quotient(*inside)
        if kind in ("power", "root"):
            return self.power(kind, *inside)
        return _opaque(kind, *map(self.form, inside))

    def quotient(self, top: Formula, bottom: Formula) -> Form:
        """A quotient, as a product with negative exponents."""
        above, below = self.form(top), self.form(bottom)
        inverse = _inverse(below)
        if inverse is None:
            return _opaque("quotient", above, below)
        whole = above[0].denominator == below[0].denominator == 1
        common = math.gcd(above[0].numerator, below[0].numerator) if whole else 1
        self.steps += below == (1, _NOTHING) or (common > 1 and above[0] != 0)
        return self.multiplied([above, inverse])

    def multiplied(self, forms: Iterable[Form]) -> Form:
        """The product of forms; powers of one base are put together."""
        number = Fraction(1)
        exponents: dict[Any, Fraction] = {}
        for coefficient, powers in forms:
            number *= coefficient
            for base, exponent in powers:
                before = exponents.get(base, Fraction(0))
                # x times its root may be as simple as x^{3/2}.
                self.steps += base in exponents and before.denominator == exponent.denominator
                exponents[base] = before + exponent
        if not number:
            return number, _NOTHING
        nonzero = [(base, exponent) for base, exponent in exponents.items() if exponent]
        return number, tuple(sorted(nonzero, key=repr))

    def power(self, kind: str, base: Formula, over: Formula) -> Form:
        """A power or a root; its exponent is a number where the formula gives one."""
        inside, outside = self.form(base), self.form(over)
        number, rest = outside
        if rest:
            # 2^{-x} is 1/2^x
            form = _opaque(kind, inside, (abs(number), rest))
            return form if number > 0 else _inverse(form) or form
        if not number:
            return _opaque(kind, inside, outside)
        exponent = number if kind == "power" else 1 / number
        if exponent == 1:
            self.steps += 1
            return inside
        if exponent == -1 and (inverse := _inverse(inside)):
            return inverse
        coefficient, powers = inside
        whole = coefficient == -1 and exponent.denominator == 1
        if (coefficient == 1 or whole) and len(powers) == 1 and abs(powers[0][1]) == 1:
            # The root of 1/x is x to the power -1/2, and (2-x)^2 is (x-2)^2.
            sign = Fraction(-1 if whole and exponent.numerator % 2 else 1)
            return sign, ((powers[0][0], powers[0][1] * exponent),)
        return Fraction(1), ((("power", inside), exponent),)

    def sum(self, parts: Iterable[Formula]) -> Form:
        """A sum; like terms are put together, its first term has no minus sign."""
        numbers: dict[Powers, Fraction] = {}
        terms = list(self.flat(parts))
        if self.computes and any(map(_has_letters, terms)):
            terms = [self.computed(term) for term in terms]
        for number, powers in terms:
            self.steps += powers in numbers or not number
            numbers[powers] = numbers.get(powers, Fraction(0)) + number
        nonzero = sorted(
            ((n, powers) for powers, n in numbers.items() if n), key=lambda t: repr(t[1])
        )
        if len(nonzero) < 2:
            return nonzero[0] if nonzero else (Fraction(0), _NOTHING)
        sign = 1 if nonzero[0][0] > 0 else -1
        whole = ("sum", tuple((sign * number, powers) for number, powers in nonzero))
        return Fraction(sign), ((whole, Fraction(1)),)

    def computed(self, term: Form) -> Form:
        """A term with its whole powers of numbers, and of their products, computed."""
        number, powers = term
        forms: list[Form] = [(number, _NOTHING)]
        for base, exponent in powers:
            if not _may_compute(base, exponent):
                forms.append((Fraction(1), ((base, exponent),)))
                continue
            self.steps += 1
            coefficient, inside = base[1]
            raised = tuple((part, over * exponent) for part, over in inside)
            forms.append((coefficient ** int(exponent), raised))
        return self.multiplied(forms)

    def flat(self, parts: Iterable[Formula]) -> Iterator[Form]:
        """The terms, and those of a sum in brackets without a factor."""
        for part in parts:
            form = self.form(part)
            yield from _terms(form) if abs(form[0]) == 1 and form[1] else (form,)
