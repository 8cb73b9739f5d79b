"""An answer after its own arithmetic: ``6 + 5 = 11`` states 11, as models write it."""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from coterie.rewards.grading.answers.asked import asked_units
from coterie.rewards.grading.answers.formula import Formula
from coterie.rewards.grading.answers.normalise import DOLLAR, plain
from coterie.rewards.grading.answers.units import unit_of
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
    text = plain(answer)
    if text.count("=") not in range(1, MOST_SIDES):
        return answer
    *working, last = (side.strip() for side in text.split("="))
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


_TWO_UNITS = re.compile(
    r"(?P<many>[0-9]{1,9}) (?P<large>[a-z]{2,7})(?:,? and|,)?"
    r" (?P<few>[0-9]{1,9}) (?P<small>[a-z]{2,7})",
    re.IGNORECASE,
)
_RATIOS = {
    ("hour", "minute"): 60,
    ("minute", "second"): 60,
    ("foot", "inch"): 12,
    ("pound", "ounce"): 16,
    ("dollar", "cent"): 100,
}


def in_one_unit(answer: str, question: str) -> str:
    """``1 hour 30 minutes`` as ``90`` to "how many minutes" and as ``3/2`` to "how many hours"; any
    other answer as it is.

    >>> in_one_unit("1 hour and 30 minutes", "How many minutes is it?")
    '90'
    """
    match = _TWO_UNITS.fullmatch(plain(answer)) if len(answer) <= 64 else None
    if match is None:
        return answer
    large, small = unit_of(match["large"]) or "", unit_of(match["small"]) or ""
    ratio = _RATIOS.get((large, small))
    asked = asked_units(question)
    if ratio is None or len(asked) != 1:
        return answer
    total = int(match["many"]) * ratio + int(match["few"])
    if asked == {small}:
        return str(total)
    return str(Fraction(total, ratio)) if asked == {large} else answer


_TWICE = re.compile(r"(?P<first>[^()]{1,64}?) ?\((?P<second>[^()]{1,64})\)")
_FOR_ALL = re.compile(
    r",?\s*\(?(?:for (?:all|every|each|any)\b|\\forall(?![A-Za-z]))(?P<scope>[^=]{0,80})\Z"
)
_LIMITING = re.compile(r"\b(?:or|except|but|not|if|unless|and)\b")


def without_repetition(answer: str) -> str:
    """``fourteen (14)`` as ``fourteen``; any other answer as it is.

    >>> without_repetition("fourteen (14)"), without_repetition("14 (15)")
    ('fourteen', '14 (15)')
    """
    match = _TWICE.fullmatch(plain(answer)) if "(" in answer else None
    if match is None or match["first"][0].isalpha() == match["second"][0].isalpha():
        return answer
    first, second = (value_of(part, "") for part in match.groups())
    if first is None or second is None or first.literal is None:
        return answer
    same = (first.literal, first.percent) == (second.literal, second.percent)
    return match["first"] if same else answer


def without_scope(answer: str, gold: str) -> str:
    r"""``f(x) = 3x`` of ``f(x) = 3x \text{ for all } x > 0``, where the gold answer names no scope.

    >>> without_scope(r"f(x) = x, \forall x", "f(x)=x"), without_scope("x for all x < 1, or 2", "x")
    ('f(x) = x', 'x for all x < 1, or 2')
    """
    text = plain(answer)
    match = _FOR_ALL.search(text)
    if match is None or _LIMITING.search(match["scope"]) or _FOR_ALL.search(plain(gold)):
        return answer
    return text[: match.start()]


_ABOUT = re.compile(r"\\approx(?![A-Za-z])")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.(?P<places>[0-9]{1,15}))?")
_OPERATIONS: Mapping[str, Callable[..., float]] = {
    "sum": lambda *terms: sum(terms),
    "product": lambda *factors: math.prod(factors),
    "quotient": lambda a, b: a / b,
    "negative": lambda a: -a,
    "power": lambda a, b: a**b,
    "root": lambda a, degree: a ** (1 / degree),
    "log": lambda a, base: math.log(a) / math.log(base),
    "degrees": math.radians,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
}


def without_rounding(answer: str, gold: str) -> str:
    r"""The exact side of ``2\sqrt3 \approx 3.46``, or the decimal one where the gold answer is a
    decimal; any other answer as it is: one that is rounded wrongly, or that has nothing to round.

    >>> without_rounding(r"2\sqrt{3} \approx 3.46", "x"), without_rounding("17 \\approx 20", "17")
    ('2\\sqrt{3}', '17 \\approx 20')
    """
    if len(sides := _ABOUT.split(plain(answer))) != 2:
        return answer
    exact_side, rounded = (side.strip() for side in sides)
    name, equals, right = exact_side.rpartition("=")
    value, decimal = value_of(right.strip()), _DECIMAL.fullmatch(rounded)
    if (
        value is None
        or decimal is None
        or value.formula[:1] + value.formula[2:3] == ("number", "plain")
    ):
        return answer
    worth = _worth(value.formula)
    half = 0.5 * 10.0 ** -len(decimal["places"] or "")
    if worth is None or abs(worth - float(rounded)) > half * 1.000001:
        return answer
    wanted = value_of(plain(gold).rpartition("=")[2].strip())
    is_decimal = wanted is not None and wanted.formula[:1] + wanted.formula[2:3] == (
        "number",
        "plain",
    )
    return name + equals + (rounded if is_decimal else right)


def _worth(formula: Formula) -> float | None:
    """A number as a float; None for what holds a letter or a function that is not known here."""
    kind, *inside = formula
    if kind == "number":
        return float(inside[0])
    if kind == "constant":
        return {"pi": math.pi, "e": math.e}.get(inside[0])
    if kind not in _OPERATIONS:
        return None
    parts = [_worth(part) for part in inside]
    try:
        result = _OPERATIONS[kind](*(part for part in parts if part is not None))
    except (ArithmeticError, ValueError, TypeError):
        return None
    known = None not in parts and isinstance(result, float | int)
    return float(result) if known else None
