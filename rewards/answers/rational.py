r"""Exact rational values: integers, decimals, fractions, mixed and scientific numbers.

Everything here works on text that ``normalise.plain`` has been through.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_LENGTH = 512
"""Characters; a longer text is no number that anyone states as an answer."""
MAX_EXPONENT = 400
"""Of ten, in scientific notation."""

_UNSIGNED = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_NUMBER = re.compile(rf"[+-]?\s?{_UNSIGNED}")
_THOUSANDS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9]|,[0-9])")
_SPACED = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9,])")
_ARGUMENT = rf"\s?(?:\{{\s?([+-]?\s?{_UNSIGNED})\s?\}}|([0-9]))"
_FRAC = re.compile(rf"\\frac{_ARGUMENT}{_ARGUMENT}")
_SLASH = re.compile(rf"\(?\s?([+-]?\s?{_UNSIGNED})\s?\)?\s?/\s?\(?\s?([+-]?\s?{_UNSIGNED})\s?\)?")
_MIXED_SLASH = re.compile(r"([0-9]+) ([0-9]+)\s?/\s?([0-9]+)")
_MIXED_FRAC = re.compile(r"([0-9]+)\s?(\\frac.+)")
_SCIENTIFIC = re.compile(
    rf"({_UNSIGNED})\s?(?:[eE]([+-]?[0-9]{{1,4}})"
    r"|(?:\\times|\\cdot|x|\*)\s?10\s?(?:\^|\*\*)\s?(?:\{\s?([+-]?[0-9]{1,4})\s?\}|([0-9])))"
)
_TEN = re.compile(r"10\s?\^\s?(?:\{\s?([+-]?[0-9]{1,4})\s?\}|([0-9]))")
_CURRENCY = re.compile(r"^([+-]?)\s?(?:[€£¥]|USD|US)\s?")
_DEGREE = re.compile(r"\s?\^\s?\\circ$")
_UNIT = re.compile(r"^(.*(?:[0-9}%.)!]|\\pi))\s([A-Za-z][A-Za-z./ -]{0,40}?)(?:\^\s?\{?[23]\}?)?$")
_NO_UNIT = frozenset(
    (
        *("and", "or", "of", "to", "less", "more", "plus", "minus", "times", "divided", "over"),
        *("dozen", "hundred", "hundreds", "thousand", "thousands", "million", "millions"),
        *("billion", "billions", "trillion", "trillions", "percent", "squared", "cubed", "mod"),
        *("half", "halves", "thirds", "quarters", "fourths", "fifths", "tenths", "hundredths"),
        *("pi", "sqrt"),
    )
)
"""Words that change the value before them."""


@dataclass(frozen=True)
class Exact:
    """An exact value, and whether a percent sign stood behind it."""

    value: Fraction
    percent: bool = False


def drop_thousands(text: str) -> str:
    """``text`` without the commas in numbers such as ``1,080``; tuples are the caller's care."""
    return _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)


def drop_units(text: str) -> str:
    """``text`` without trailing words that name a unit (``18 dollars``, ``15 cm^2``).

    Words that change the value (``5 million``, ``5 or more``) and single letters, which may be
    variables, are kept.
    """
    match = _UNIT.fullmatch(text)
    if match is None:
        return text
    words = match[2].casefold().replace("/", " ").split()
    if len(words[0]) < 2 or any(word.strip(".-") in _NO_UNIT for word in words):
        return text
    return match[1].strip()


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(" ", ""))


def _ratio(numerator: str, denominator: str) -> Fraction | None:
    bottom = _decimal(denominator)
    return None if bottom == 0 else _decimal(numerator) / bottom


def _unsigned(text: str) -> Fraction | None:
    """The value of a text that has lost its sign."""
    if _NUMBER.fullmatch(text):
        return _decimal(text)
    if match := _FRAC.fullmatch(text):
        top, top_digit, bottom, bottom_digit = match.groups()
        return _ratio(top or top_digit, bottom or bottom_digit)
    if match := _SLASH.fullmatch(text):
        return _ratio(match[1], match[2])
    if match := _MIXED_SLASH.fullmatch(text):
        part = _ratio(match[2], match[3])
        return None if part is None else _decimal(match[1]) + part
    if match := _MIXED_FRAC.fullmatch(text):
        part = _unsigned(match[2]) if match[2].startswith("\\frac") else None
        return None if part is None else _decimal(match[1]) + part
    if match := _SCIENTIFIC.fullmatch(text):
        power = int(match[2] or match[3] or match[4])
        return _decimal(match[1]) * Fraction(10) ** power if abs(power) <= MAX_EXPONENT else None
    if match := _TEN.fullmatch(text):
        power = int(match[1] or match[2])
        return Fraction(10) ** power if abs(power) <= MAX_EXPONENT else None
    return None


def exact(text: str) -> Exact | None:
    r"""The exact value of a number, or None where ``text`` is anything else.

    Reads ``042``, ``1,080``, ``-3.50``, ``\frac43``, ``7/2``, ``137 \frac{1}{2}``,
    ``6.72\times10^{-5}``, ``18 dollars``, ``90^\circ`` and ``8%`` (the value 8, marked).
    """
    if not text or len(text) > MAX_LENGTH or (not text.isascii() and "€" not in text):
        return None
    text = drop_units(_CURRENCY.sub(r"\1", text))
    text = _DEGREE.sub("", text)
    percent = text.endswith("%") or text.casefold().endswith(" percent")
    if percent:
        text = text.rstrip("%").removesuffix(" percent").rstrip()
    text = drop_thousands(text)
    text = _SPACED.sub(lambda match: match.group().replace(" ", ""), text)
    sign = 1
    while text[:1] in "+-([{" and text:
        if text[0] in "+-":
            sign = -sign if text[0] == "-" else sign
            text = text[1:].strip()
        elif len(text) > 2 and text[-1] == {"(": ")", "[": "]", "{": "}"}[text[0]]:
            inner = text[1:-1].strip()
            if any(bracket in inner for bracket in "()[]"):
                break
            text = inner
        else:
            break
    value = _unsigned(text)
    return None if value is None else Exact(sign * value, percent)


def same_value(gold: Exact, answer: Exact, *, percent: bool, tolerance: float = 0.0) -> bool:
    """Whether two exact values are equal, or no further apart than ``tolerance``.

    A percent sign is a unit, so 50 % equals 50. With ``percent`` it is also a hundredth: 50 %
    equals 0.5 as well.
    """
    if gold.value == answer.value:
        return True
    # |gold - answer| <= tolerance   OlympiadBench, arXiv:2402.14008; the decimal, not its float
    if tolerance and abs(gold.value - answer.value) <= Fraction(str(tolerance)):
        return True
    if percent and gold.percent != answer.percent:
        hundredth = Fraction(1, 100)
        left = gold.value * (hundredth if gold.percent else 1)
        right = answer.value * (hundredth if answer.percent else 1)
        return left == right
    return False
