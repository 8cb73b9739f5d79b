"""An answer after its own arithmetic: ``6 + 5 = 11`` states 11, as models write it."""

import math
import re
from fractions import Fraction

from coterie.rewards.grading.answers.formula import Formula
from coterie.rewards.grading.answers.normalise import DOLLAR, plain
from coterie.rewards.grading.answers.values import Value, value_of

MOST_SIDES = 8
LARGEST_EXPONENT = 12
_TIMES = re.compile(r"(?<=[0-9)]) ?x ?(?=[0-9(])")
_NAME = re.compile(r"[A-Za-z](?:\([A-Za-z0-9, ]{1,16}\))?")


def without_working(answer: str) -> str:
    r"""The last side of a chain whose sides are sums, products and quotients of literals and all
    equal, after the name that stands first, if any: ``x = 2 \cdot 6 - 1 = 11`` gives ``x=11``.
    Any other answer comes back as it is: one that is computed wrongly, or not to its end.

    >>> without_working("9 * 8 = 72 nails"), without_working("6 + 4 = 11")
    ('72 nails', '6 + 4 = 11')
    """
    if answer.count("=") not in range(1, MOST_SIDES):
        return answer
    *working, last = (side.strip() for side in plain(answer).split("="))
    name = working.pop(0) if _NAME.fullmatch(working[0]) else ""
    result = value_of(last)
    if not working or result is None or result.literal is None:
        return answer
    sides = [value_of(_TIMES.sub("*", side.replace(DOLLAR, ""))) for side in working]
    if not all(side and _amount(side.formula) in _amounts(result) for side in sides):
        return answer
    return f"{name}={last}" if name else last


def _amounts(value: Value) -> tuple[Fraction | None, ...]:
    """The number, and of a percentage the share too."""
    number = value.literal
    return (number, number / 100) if value.percent and number is not None else (number,)


def _amount(formula: Formula) -> Fraction | None:
    """What arithmetic on literals comes to; None for any other formula."""
    kind, *inside = formula
    if kind == "number":
        return inside[0]
    if kind not in ("sum", "product", "quotient", "negative", "power"):
        return None
    amounts = [_amount(part) for part in inside]
    if any(amount is None for amount in amounts):
        return None
    numbers = [amount for amount in amounts if amount is not None]
    if kind == "sum":
        return sum(numbers, Fraction())
    if kind == "product":
        return math.prod(numbers, start=Fraction(1))
    if kind == "negative":
        return -numbers[0]
    base, other = numbers
    if kind == "power":
        return base ** int(other) if other in range(LARGEST_EXPONENT + 1) else None
    return base / other if other else None
