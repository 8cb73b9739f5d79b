r"""Formulas as trees of tuples, and what holds for them before anything is computed.

("number", Fraction, form)      a literal; how it is written: plain, fraction or ten (a power);
                                a fraction that is not in lowest terms carries its divisor as well
("symbol", "x_1")               case kept
("constant", "pi")              also e, i and oo
("sum", a, b, ...), ("product", a, b, ...), ("quotient", a, b), ("power", a, b)
("negative", a), ("cos", a), ("root", a, n), ("log", a, base), ("degrees", a), ...
("of f", a)                     a function without a definition
("of product", a, b, ...)       a product of matrices or vectors, whose order counts
("equation", left, right)       at the root only
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

Formula = tuple[Any, ...]

OF = "of "
LEAVES = frozenset({"number", "symbol", "constant"})
FUNCTIONS = frozenset(
    [f"{arc}{name}{h}" for arc in ("", "arc") for name in ("sin", "cos", "tan") for h in ("", "h")]
    + ["cot", "sec", "csc", "ln", "log", "exp"]
)
MAX_EXPONENT = 400
"""Largest power of ten in a literal."""


def parts(formula: Formula) -> Iterator[Formula]:
    """The formula and everything in it; a literal is one part."""
    yield formula
    if formula[0] not in LEAVES:
        for part in formula[1:]:
            yield from parts(part)


def ordered(formula: Formula) -> Formula:
    """One order for the parts of sums and products, so that ``1+x`` is ``x+1``."""
    if formula[0] in LEAVES:
        return formula[:2]
    inside = tuple(map(ordered, formula[1:]))
    return (formula[0], *(sorted(inside, key=repr) if formula[0] in ("sum", "product") else inside))


def in_order(product: Formula) -> Formula:
    """A product of vectors, or of matrices, known by an inverse or a transpose, with its factors in
    order; any other formula as it is."""
    if product[0] != "product":
        return product
    factors = [part for part in product[1:] if part[0] != "number"]
    vectors = sum(part[0] == "symbol" and part[1].startswith("\\vec") for part in factors) > 1
    matrices = any(map(_is_inverse_or_transpose, factors)) and all(map(_may_be_matrix, factors))
    if len(factors) < 2 or not (matrices or vectors):
        return product
    numbers = [part for part in product[1:] if part[0] == "number"]
    rest = (f"{OF}product", *factors)
    return ("product", *numbers, rest) if numbers else rest


def _is_inverse_or_transpose(formula: Formula) -> bool:
    if formula[0] != "power" or not _may_be_matrix(formula[1]):
        return False
    exponent = formula[2]
    return exponent[:2] == ("number", -1) or exponent == ("symbol", "T")


def _may_be_matrix(formula: Formula) -> bool:
    """Whether it holds capital letters and no others."""
    if formula[0] == "power":
        return _may_be_matrix(formula[1])
    names = [part[1] for part in parts(formula) if part[0] == "symbol"]
    return bool(names) and all(name[0].isupper() for name in names)


def numeral(text: str) -> Formula:
    """A decimal numeral as a literal."""
    return ("number", Fraction(text), "plain")


def scientific(mantissa: str, exponent: str) -> Formula | None:
    """``6.72e-5``; None where the exponent is too large."""
    if abs(int(exponent)) > MAX_EXPONENT:
        return None
    return ("number", Fraction(mantissa) * Fraction(10) ** int(exponent), "plain")


def repeating(whole: str, digits: str) -> Formula:
    """``0.1`` and ``6`` for 0.1666...: 0.1 and 6/90."""
    places = len(whole.partition(".")[2])
    tail = Fraction(int(digits), (10 ** len(digits) - 1) * 10**places)
    value = Fraction(whole.rstrip(".") or "0") + tail
    # 0.999... is 1, and no division left to do.
    return ("number", value, "fraction" if value.denominator > 1 else "plain")


def negative(formula: Formula) -> Formula:
    """A literal with its sign, or the opposite of a formula: ``-(-5)`` is work left to do."""
    if formula[0] == "number" and formula[1] >= 0:
        return ("number", -formula[1], *formula[2:])
    return ("negative", formula)


def joined(kind: str, left: Formula, right: Formula) -> Formula:
    """A sum or product with one more part: flat, so that a long one is no deep tree."""
    return (*left, right) if left[0] == kind else (kind, left, right)


def times(left: Formula, right: Formula) -> Formula:
    """A product with a sign between its factors; 6.72 times a power of ten is one literal."""
    if left[0] == right[0] == "number" and left[2] == "plain" and right[2] == "ten":
        return ("number", left[1] * right[1], "plain")
    return joined("product", left, right)


def quotient(top: Formula, bottom: Formula) -> Formula:
    """A quotient; one of two integers is a fraction, which is a literal."""
    literals = top[0] == bottom[0] == "number" and "fraction" not in (top[2], bottom[2])
    if literals and bottom[1] != 0 and top[1].denominator == bottom[1].denominator == 1:
        common = math.gcd(int(top[1]), int(bottom[1]))
        return ("number", top[1] / bottom[1], "fraction", *((common,) if common > 1 else ()))
    return ("quotient", top, bottom)


def mixed(whole: Formula, fraction: Formula) -> Formula | None:
    """A mixed number of a numeral and a proper fraction; None for any other two formulas."""
    proper = fraction[0] == "number" and whole[1] >= 1 and 0 < fraction[1] < 1
    return ("number", whole[1] + fraction[1], "fraction", *fraction[3:]) if proper else None


def power(base: Formula, exponent: Formula) -> Formula:
    """A power; a whole power of ten is a literal."""
    ten = base[0] == exponent[0] == "number" and base[1:] == (10, "plain")
    if ten and exponent[1].denominator == 1 and abs(exponent[1]) <= MAX_EXPONENT:
        return ("number", Fraction(10) ** int(exponent[1]), "ten")
    return ("power", base, exponent)
