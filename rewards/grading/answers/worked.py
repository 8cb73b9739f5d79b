"""An answer after its own arithmetic: ``6 + 5 = 11`` states 11, as models write it."""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from coterie.rewards.grading.answers.caps import MAX_LENGTH
from coterie.rewards.grading.answers.formula import Formula
from coterie.rewards.grading.answers.normalise import DOLLAR, plain
from coterie.rewards.grading.answers.question_units import question_units
from coterie.rewards.grading.answers.units import unit_of
from coterie.rewards.grading.answers.values import Value, value_of

MOST_SIDES = 8
LARGEST_EXPONENT = 64
LARGEST_FACTORIAL = 20
_TIMES = re.compile(r"(?<=[0-9)]) ?x ?(?=[0-9(])")
_NAME = re.compile(r"[A-Za-z](?:\([A-Za-z0-9, ]{1,16}\))?")


def without_working(answer: str, question: str | None = None) -> str:
    r"""The last side of a chain whose sides are sums, products and quotients of literals and all
    equal, after the name that stands first, if any: ``x = 2 \cdot 6 - 1 = 11`` gives ``x=11``.
    Any other answer comes back as it is: one that is computed wrongly, or not to its end.

    >>> without_working("9 * 8 = 72 nails", "How many nails?"), without_working("6 + 4 = 11")
    ('72 nails', '6 + 4 = 11')
    """
    text = plain(answer)
    if text.count("=") not in range(1, MOST_SIDES):
        return answer
    *working, last = (side.strip() for side in text.split("="))
    name = working.pop(0) if _NAME.fullmatch(working[0]) else ""
    result = value_of(last, question)
    if not working or result is None or result.literal is None:
        return answer
    if not all(_comes_to(side, result) for side in working):
        return answer
    return f"{name}={last}" if name else last


_COUNTED = re.compile(r"(?<=[0-9)}])\s*(?<!\\)[A-Za-z]{2,}(?:\s[a-z]{2,}){0,2}")


def sums_to(working: str, result: str, question: str | None = None) -> bool:
    """Whether each side of a chain of literals comes to a value; words behind numbers do not count.

    >>> sums_to("3 pens + 4 pens", "7 pens"), sums_to("3 + 4 = 8 - 1", "7"), sums_to("x + 3", "7")
    (True, True, False)
    """
    last = value_of(plain(result), question) or value_of(plain(_COUNTED.sub("", result)))
    if len(working) > MAX_LENGTH or last is None or last.literal is None:
        return False
    return all(_comes_to(_COUNTED.sub("", side), last) for side in working.split("="))


def _comes_to(working: str, result: Value) -> bool:
    """Whether a sum comes to a literal, or to the share that a percentage is."""
    value = value_of(_TIMES.sub("*", plain(working).replace(DOLLAR, "")))
    worth, wanted = _worth(value.formula) if value else None, result.literal
    if worth is None or wanted is None:
        return False
    if isinstance(worth, float):
        return abs(Fraction(worth) - wanted) <= abs(wanted) / 10**9
    return worth == wanted or (result.percent and worth == wanted / 100)


def _worth(formula: Formula) -> Fraction | float | None:
    """A number, exactly where arithmetic comes to one; None for what holds a letter or a function
    that is not known here."""
    kind, *inside = formula
    if kind == "number":
        return inside[0]
    if kind == "constant":
        return {"pi": math.pi, "e": math.e}.get(inside[0])
    parts = [_worth(part) for part in inside] if kind in _OPERATIONS else [None]
    if None in parts:
        return None
    try:
        result = _OPERATIONS[kind](*parts)
    except (ArithmeticError, ValueError):
        return None
    finite = isinstance(result, float) and math.isfinite(result)
    return result if finite or isinstance(result, Fraction) else None


def _power(base: Fraction | float, exponent: Fraction | float) -> Any:
    small = isinstance(base, Fraction) and abs(base.numerator * base.denominator) < 1 << 64
    exact = small and exponent in range(LARGEST_EXPONENT + 1)
    return base ** int(exponent) if exact else float(base) ** float(exponent)


def _factorial(number: Fraction | float) -> Fraction:
    if number not in range(LARGEST_FACTORIAL + 1):
        raise ValueError("no factorial of a small whole number")
    return Fraction(math.factorial(int(number)))


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "sum": lambda *terms: sum(terms),
    "product": lambda *factors: math.prod(factors),
    "quotient": lambda a, b: a / b,
    "negative": lambda a: -a,
    "power": _power,
    "factorial": _factorial,
    "root": lambda a, degree: float(a) ** float(1 / degree),
    "log": lambda a, base: math.log(a) / math.log(base),
    "degrees": math.radians,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
}


_MEASURE = re.compile(r"(?P<many>[0-9]{1,9}(?:\.[0-9]{1,9})?) (?P<unit>[a-z]{1,12})", re.IGNORECASE)
_WORTHS = {
    "second": (1, "time"), "minute": (60, "time"), "hour": (3600, "time"), "day": (86400, "time"),
    "week": (604800, "time"), "inch": (1, "imperial"), "foot": (12, "imperial"),
    "yard": (36, "imperial"), "mile": (63360, "imperial"), "millimeter": (1, "metric"),
    "centimeter": (10, "metric"), "meter": (1000, "metric"), "kilometer": (1000000, "metric"),
    "milligram": (1, "mass"), "gram": (1000, "mass"), "kilogram": (1000000, "mass"),
    "milliliter": (1, "volume"), "liter": (1000, "volume"), "ounce": (1, "weight"),
    "pound": (16, "weight"), "cent": (1, "money"), "dollar": (100, "money"),
}  # fmt: skip
"""Units in the smallest of their kind."""


def in_one_unit(answer: str, question: str) -> str:
    """``1 hour 30 minutes`` as ``90`` to "how many minutes" and as ``3/2`` to "how many hours"; any
    other answer as it is.

    >>> in_one_unit("1 hour and 30 minutes", "How many minutes is it?")
    '90'
    """
    measures = _measures(answer) if len(answer) <= 64 else []
    total, requested = _total(measures), question_units(question)
    if len(measures) < 2 or total is None or len(requested) != 1:
        return answer
    (unit,) = requested
    return str(total[0] / _WORTHS[unit][0]) if unit in {u for _, u in measures} else answer


def _measures(text: str) -> list[tuple[Fraction, str]]:
    """The numbers and units of ``2 hours 30 minutes``; none where a part is no such measure, or two
    have the same unit."""
    parts = re.split(r",?\sand\s|,\s|(?<=[a-z])\s(?=[0-9])", plain(text))
    found = [match for part in parts if (match := _MEASURE.fullmatch(part))]
    measures = [(Fraction(match["many"]), unit_of(match["unit"]) or "") for match in found]
    known = {unit for _, unit in measures if unit in _WORTHS}
    return measures if len(known) == len(parts) else []


def _total(measures: list[tuple[Fraction, str]]) -> tuple[Fraction, str] | None:
    """Measures together, in the smallest unit of their kind, and that kind."""
    kinds = {_WORTHS[unit][1] for _, unit in measures}
    if len(kinds) != 1:
        return None
    return sum((many * _WORTHS[unit][0] for many, unit in measures), Fraction()), kinds.pop()


_FOR_ALL = re.compile(
    r",?\s*\(?(?:for (?:all|every|each|any)\b|\\forall(?![A-Za-z])"
    r"|for some (?=(?:real |arbitrary )?constants?\b)|where (?=\S{1,9} is (?:an?|any) )"
    r"(?=.*\bconstant\b))(?P<scope>[^=]{0,80})\Z"
    # "k \in \mathbb{Z}", "for integer k", "where k is an integer"
    r"|(?:,\s?|\s?\()(?:where\s+)?(?P<name>[A-Za-z])\s?\\in(?![A-Za-z])\s?"
    r"(?:\\mathbb\s?\{?\s?[ZNC]\s?\}?|ℤ|ℕ|\(-\\infty,\s?\\infty\))\)?\Z"
    r"|,?\s\(?(?:for\s+(?:any\s+)?integers?\s+(?P<whole>[a-z])"
    r"|where\s+(?P<some>[a-z])\s+is\s+(?:an?|any)\s+integer)\)?\Z"
)
_LIMITING = re.compile(r"\b(?:or|except|but|not|if|unless|and)\b")


def without_scope(answer: str, gold: str) -> str:
    r"""``f(x) = 3x`` of ``f(x) = 3x \text{ for all } x > 0``, where the gold answer names no scope.

    >>> without_scope(r"f(x) = x, \forall x", "f(x)=x"), without_scope("x for all x < 1, or 2", "x")
    ('f(x) = x', 'x for all x < 1, or 2')
    >>> without_scope(r"x + c \text{ for some constant } c", "x+c")
    'x + c'
    """
    text = plain(answer)
    match = _FOR_ALL.search(text)
    if match is None or _LIMITING.search(match["scope"] or "") or _FOR_ALL.search(plain(gold)):
        return answer
    name, value = match["name"] or match["whole"] or match["some"], text[: match.start()]
    return value if not name or re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z])", value) else answer


_INTEGRATES = re.compile(
    r"\\int(?![A-Za-z])|\b(?:antiderivative|integra|differential\sequation)", re.I
)
_CONSTANT = re.compile(r"(?<=\+)\s?[cCkK]\Z")


def with_constant(answer: str, gold: str, question: str) -> str:
    """``x^2+c`` as ``x^2+C`` where that is the gold answer's constant of integration.

    >>> with_constant("x^2+K", "x^2+C", "Find the antiderivative."), with_constant("c+K", "B+C", "")
    ('x^2+C', 'c+K')
    """
    constant = _CONSTANT.search(plain(gold))
    text = plain(answer)
    if not constant or not _CONSTANT.search(text) or not _INTEGRATES.search(question):
        return answer
    return _CONSTANT.sub(constant[0], text)


_ABOUT = re.compile(r"\\approx(?![A-Za-z])")
_SAID_ABOUT = re.compile(
    r",?\s+\(?(?:or|which\s+is|i\.e\.,?|that\s+is,?)?\s*"
    r"(?:(?:approximately|about|roughly|around)\s|≈|\\approx(?![A-Za-z]))\s*(?P<rounded>\$?[0-9][^()]*)\)?"
)
"""Announces a rounded value behind an exact one."""
_AGAIN = (
    r"(?:or(?:\s+equivalently)?|i\.e\.|that\s+is|equivalently|namely|in\s+other\s+words"
    r"|which\s+(?:is|equals)(?:\s+equal\s+to|\s+the\s+same\s+as)?),?"
)
_FORMS = re.compile(rf",?\s+{_AGAIN}\s+")
_IN_BRACKETS = re.compile(
    rf"(?P<first>.+?)\s+\((?:{_AGAIN}\s+|=\s*)?(?P<second>.+)\)(?P<unit>(?:\s+[a-z]+){{0,3}})",
    re.DOTALL,
)
_DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.(?P<places>[0-9]{1,15}))?")


def without_rounding(answer: str, gold: str) -> str:
    r"""The exact side of ``2\sqrt3 \approx 3.46``, or the decimal one where the gold answer is a
    decimal; any other answer as it is: one that is rounded wrongly, or that has nothing to round.

    >>> without_rounding(r"2\sqrt{3} \approx 3.46", "x"), without_rounding("17 \\approx 20", "17")
    ('2\\sqrt{3}', '17 \\approx 20')
    """
    if len(answer) <= MAX_LENGTH:
        answer = _SAID_ABOUT.sub(r" \\approx \g<rounded>", answer)
    if len(sides := _ABOUT.split(plain(answer))) != 2:
        return answer
    exact_side, rounded = (side.strip() for side in sides)
    name, equals, right = exact_side.rpartition("=")
    value, decimal = value_of(right.strip()), _DECIMAL.fullmatch(rounded)
    if value is None or decimal is None or _is_decimal(value):
        return answer
    worth = _worth(value.formula)
    half = Fraction(1, 2 * 10 ** len(decimal["places"] or ""))
    if worth is None or abs(Fraction(worth) - Fraction(rounded)) > half:
        return answer
    target = value_of(plain(gold).rpartition("=")[2].strip())
    shows_decimal = target is not None and _is_decimal(target)
    return name + equals + (rounded if shows_decimal else right)


def _is_decimal(value: Value) -> bool:
    return value.formula[:1] + value.formula[2:3] == ("number", "plain")


def stated_forms(answer: str, question: str) -> list[list[str]]:
    r"""The ways to read an answer as several forms of one value, of which each has to be right:
    ``fourteen (14)``, ``x > 4, i.e. (4, \infty)``, ``-0.75 = -\frac34``. Percentages that
    are the share before them are left out: ``\frac12, or 50%``. Of measures that are one, such as
    ``90 minutes (1.5 hours)``, each is a way.

    >>> stated_forms("fourteen (14)", ""), stated_forms("1/2, or 50%", ""), stated_forms("14", "")
    ([['fourteen', '14']], [['1/2']], [])
    """
    if len(answer) > MAX_LENGTH:
        return []
    text = answer.strip().rstrip(".")
    sides = text.split("=")
    ways = [_FORMS.split(text), sides if _NAME.fullmatch(sides[0].strip(" $")) is None else []]
    if (match := _IN_BRACKETS.fullmatch(text)) is not None:
        ways.append([match["first"] + match["unit"], match["second"] + match["unit"]])
    several = (_readings(way, question) for way in ways if 1 < len(way) <= MOST_SIDES)
    return [forms for readings in several for forms in readings]


def _readings(forms: list[str], question: str) -> list[list[str]]:
    """Each of several equal measures alone; other forms together, without the percentages equal to
    the first. None if a value or a unit differs."""
    totals = {_total(_measures(form)) for form in forms}
    if None not in totals:
        return [[form] for form in forms] if len(totals) == 1 else []
    values = [value_of(plain(form), question) for form in forms]
    if len({value.unit for value in values if value and value.unit}) > 1:
        return []
    percentages = [value for value in values if value and value.percent]
    if len(percentages) in (0, len(forms)):
        return [forms]
    share = values[0].literal if values[0] and not values[0].percent else None
    if share is None or any(value.literal != 100 * share for value in percentages):
        return []
    return [[form for form, value in zip(forms, values, strict=True) if value not in percentages]]
