r"""What a number that stands as an answer is worth, and whether it is a value at all.

An answer has to say a value. Where the gold answer is a number, arithmetic that is left to do
(``17*23``, ``20!``, ``782/2``) is no answer, whatever it would come to: else a policy is paid for
restating the question. How much may be left follows from the gold answer: for ``391`` and ``0.5``
a literal, for ``\frac12`` one function of one number as well, for ``2\sqrt3`` and ``5!`` a closed
form with no more additions, at most two more operations, and no two literals left to add or to
multiply, for ``x+1`` whatever algebra finds equal.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from coterie.rewards.grading.answers.caps import refuses
from coterie.rewards.grading.answers.formula import FUNCTIONS, LEAVES, OF, Formula, parts
from coterie.rewards.grading.answers.grammar import read
from coterie.rewards.grading.answers.normalise import DOLLAR
from coterie.rewards.grading.answers.units import (
    CARDINALS,
    ORDINALS,
    TENS,
    counts,
    spelled_out,
    split_unit,
)

EXTRA_OPERATIONS = 2
"""Operations by which a closed form may exceed the gold answer's."""

_THOUSANDS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9]|,[0-9])")
_SPACED = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9,]| ?/)")
_PLAIN = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})")
_CURRENCIES = {
    DOLLAR: "dollar", "U": "dollar", "€": "euro", "£": "sterling", "¥": "yen", "¢": "cent",
}  # fmt: skip
_MONEY = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<before>USD?(?=[ {DOLLAR}]?[0-9.]))?\s?(?P<mark>[{DOLLAR}€£¥¢])?"
    rf"\s?(?P<amount>.*[^\s{DOLLAR}€£¥¢])\s?(?P<after>[{DOLLAR}€£¥¢])?"
)
_CODES = {
    code: name
    for name, codes in {
        "rupee": "RS INR ₹", "franc": "CHF", "euro": "EUR", "sterling": "GBP", "yen": "JPY",
        "yuan": "CNY RMB", "won": "₩ KRW", "peso": "₱", "ruble": "₽", "real": "R＄",
        "dollar of Australia": "AUD A＄ AU＄", "dollar of Canada": "CAD C＄ CA＄",
        "dollar of New Zealand": "NZD NZ＄", "dollar of Singapore": "SGD S＄",
        "dollar of Hong Kong": "HKD HK＄",
    }.items()
    for code in codes.split()
}  # fmt: skip
"""Codes and signs of currencies that are no single well-known sign."""
_CODE = "|".join(map(re.escape, sorted(_CODES, key=len, reverse=True)))
_CURRENCY_FIRST = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<code>{_CODE}|Rs)\.?\s?(?=[0-9.])", re.IGNORECASE
)
_CURRENCY_LAST = re.compile(rf"(?<=[0-9])\s?(?P<code>{_CODE})\.?\s?\Z", re.IGNORECASE)
_ORDINAL = re.compile(
    r"(?:the )?(?P<number>[0-9]{1,9})\s?(?:\^\s?)?(?:\{\s?)?(?P<ending>st|nd|rd|th)"
    r"(?:\s?\})?(?=\s|\Z)"
)
_ENDINGS = {"1": "st", "2": "nd", "3": "rd"}
_RANKS = {name: place for place, name in enumerate(ORDINALS)}
NUMBER_WORDS = TENS | _RANKS | {name: place for place, name in enumerate(CARDINALS)}
_ONE_TO_NINE = "|".join([*CARDINALS[1:10], *ORDINALS[1:10]])
_BELOW_100 = rf"(?:(?:{'|'.join(TENS)})(?:[-\s](?:{_ONE_TO_NINE}))?|{'|'.join(CARDINALS)})"
_HUNDREDS = rf"(?:a|{'|'.join(CARDINALS)})[-\s]hundred(?:[-\s](?:and[-\s])?{_BELOW_100})?"
_NUMBER_WORDS = re.compile(
    # "one hundred and twenty", "twelve thousand four hundred", "the twenty-third", "fifth"
    rf"(?:the )?(?P<words>(?:{_HUNDREDS}|{_BELOW_100}|a)[-\s]thousand"
    rf"(?:,?[-\s](?:and[-\s])?(?:{_HUNDREDS}|{_BELOW_100}))?"
    rf"|{_HUNDREDS}|{_BELOW_100}|(?:{'|'.join(ORDINALS)})(?=\Z))(?=[\s.,]|\Z)",
    re.IGNORECASE,
)
_ERA = re.compile(
    r"(?:in\s+)?(?:the year\s+)?(?P<year>[1-9][0-9]{2,3})(?:\s?(?:AD|A\.D|CE|C\.E)\.?)?",
    re.IGNORECASE,
)
"""A year in words: ``in 1969``, ``1969 AD``."""
_SCALED = re.compile(
    r"(?P<number>[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?) (?P<word>thousand|million|billion|trillion)"
    r"(?![A-Za-z])"
)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ASKED_SCALE = re.compile(
    r"\b(?:how\s+many|in)\s+(thousand|million|billion|trillion)s?\b", re.IGNORECASE
)
_PERCENT = re.compile(r"\s?(?:%|percent)\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Value:
    """One number or formula, read whole."""

    formula: Formula
    unit: str = ""
    """The name of the measure after it."""
    percent: bool = False
    counted: bool = False
    """Whether a thing that is counted stands after it: ``5 apples``."""
    behind: str = ""
    """What stands after the number."""

    @property
    def literal(self) -> Fraction | None:
        """The exact value, where nothing is left to compute."""
        return self.formula[1] if self.formula[0] == "number" else None

    @property
    def is_number(self) -> bool:
        """Whether it holds no variable."""
        return not any(
            part[0] == "symbol" or part[0].startswith(OF) for part in parts(self.formula)
        )


def drop_thousands(text: str) -> str:
    """``text`` without the commas in numbers such as ``1,080``; tuples are the caller's care."""
    return _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)


@lru_cache(maxsize=8192)
def value_of(text: str, question: str | None = None) -> Value | None:
    r"""The value that all of ``text`` states, in the form of ``normalise.plain``; None where it is
    not read whole.

    Reads numbers (``042``, ``1,080``, ``-3.50``, ``\frac43``, ``7/2``, ``137 \frac{1}{2}``,
    ``6.72\times10^{-5}``, ``8%``) and formulas, with a unit or currency (:func:`split_unit`).
    """
    if _PLAIN.fullmatch(text):
        return Value(("number", Fraction(text), "plain"))
    if year := _ERA.fullmatch(text):
        return Value(("number", Fraction(year["year"]), "plain"))
    text = in_digits(text, words=question is not None)
    text, currency = _without_currency(text, question or "")
    money = _MONEY.fullmatch(text)
    if money is None:
        return None
    mark = money["mark"] or money["before"] or money["after"] or ""
    text = drop_thousands(money["sign"] + money["amount"])
    text = _SPACED.sub(lambda match: match.group().replace(" ", ""), text)
    scales = {scale.casefold() for scale in _ASKED_SCALE.findall(question or "")}
    scaled = _SCALED.match(text)
    if scaled and scaled["word"] in scales:
        # "How many million?"
        whole = scaled["number"] + text[scaled.end() :]
    else:
        whole = _SCALED.sub(_scaled, text, count=1)
    whole = spelled_out(whole)
    text, unit = split_unit(whole, question)
    counted = not unit and counts(whole[len(text) :])
    if not unit or unit.startswith("/"):
        # "$35 per week"
        unit = (currency or _CURRENCIES.get(mark[:1], "")) + unit
    bare = _PERCENT.sub("", text)
    formula = None if refuses(bare) else read(bare)
    if formula is None:
        return None
    if _ends_in_degrees(formula):
        formula, unit = _without_degrees(formula), unit or "degree"
    percent = bare != text
    behind = whole[len(text) :]
    return Value(formula, unit, percent=percent, counted=counted and not percent, behind=behind)


def in_digits(text: str, *, words: bool = True) -> str:
    """``12th`` as ``12``; numbers in ``words`` (``twelve hundred``, ``the fifth``) too."""
    if ordinal := _ORDINAL.match(text):
        number = ordinal["number"]
        ending = "th" if number[-2:-1] == "1" else _ENDINGS.get(number[-1], "th")
        return number + text[ordinal.end() :] if ordinal["ending"] == ending else text
    named = _NUMBER_WORDS.match(text) if words else None
    # "second" alone is a unit as well.
    if named is None or named[0].casefold() == "second":
        return text
    total = part = 0
    for word in re.split(r"[-,\s]+", named["words"].casefold()):
        if word == "thousand":
            total, part = 1000 * part, 0
        elif word == "hundred":
            part *= 100
        elif word != "and":
            part += 1 if word == "a" else NUMBER_WORDS[word]
    return f"{total + part}{text[named.end() :]}"


def _without_currency(text: str, question: str) -> tuple[str, str]:
    """``Rs. 1250`` and ``1250 INR`` as ``1250``, with the name of the currency."""
    match = _CURRENCY_FIRST.match(text)
    if match:
        rest = match["sign"] + text[match.end() :].removesuffix("/-")
    elif match := _CURRENCY_LAST.search(text):
        rest = text[: match.start()]
    else:
        rest = text.removesuffix("/-")
        return rest, "rupee" * (rest != text)
    code = match["code"].replace(" ", "").rstrip(".").upper()
    if code in question.upper().replace(DOLLAR, "$") or code.replace(DOLLAR, "$") in question:
        # A$5 is five dollars where dollars are Australian.
        return rest, "dollar" if "dollar" in _CODES[code] else _CODES[code]
    return rest, _CODES[code]


def _scaled(match: re.Match[str]) -> str:
    """``1.25 million`` in digits if it starts the text and is a whole number."""
    number = Fraction(match["number"]) * _SCALES[match["word"]]
    return str(number) if match.start() == 0 and number.denominator == 1 else match[0]


def exact(text: str) -> Value | None:
    """The value of a text that is nothing but a literal; None for any other."""
    value = value_of(text) if len(text) <= 512 else None
    return value if value is not None and value.literal is not None else None


def _ends_in_degrees(formula: Formula) -> bool:
    return formula[0] == "degrees" or (formula[0] == "negative" and formula[1][0] == "degrees")


def _without_degrees(formula: Formula) -> Formula:
    if formula[0] == "degrees":
        return formula[1]
    inside = formula[1][1]
    return ("number", -inside[1], *inside[2:]) if inside[0] == "number" else ("negative", inside)


def says_a_value(gold: Value, answer: Value) -> bool:
    """Whether ``answer`` leaves no more work than ``gold`` does; see above."""
    if not gold.is_number:
        return True
    if _open_imaginary(answer.formula) > _open_imaginary(gold.formula):
        return False
    if gold.literal is not None and gold.formula[2] != "fraction":
        # 782/2 is a division left to do.
        literal = answer.literal
        if literal is None:
            # 100^{50} for 10^{100}, as 4^5 for 2^{10}
            return gold.formula[2] == "ten" and _is_power_of_literals(answer.formula)
        return literal.denominator > 1 or answer.formula[2] != "fraction"
    if answer.literal is not None:
        return True
    if gold.literal is not None:
        return _is_single_function(answer.formula)
    return (
        _additions(answer.formula) <= _additions(gold.formula)
        and _operations(answer.formula) <= _operations(gold.formula) + EXTRA_OPERATIONS
        and _pending(answer.formula) <= _pending(gold.formula)
    )


def _open_imaginary(formula: Formula) -> int:
    r"""Count the operations on i that are left to do: ``i^3``, ``i \cdot i``, ``1/i``."""
    return sum(map(_is_open_imaginary, parts(formula)))


def _is_open_imaginary(formula: Formula) -> bool:
    kind, *inside = formula
    if kind == "power":
        return _is_imaginary(inside[0]) or (_is_negative(inside[0]) and not _is_whole(inside[1]))
    if kind == "quotient":
        return _is_imaginary(inside[1])
    return kind == "product" and sum(map(_is_imaginary, inside)) > 1


def _is_imaginary(formula: Formula) -> bool:
    return any(
        part == ("constant", "i") or (part[0] == "root" and _is_negative(part[1]))
        for part in parts(formula)
    )


def _is_negative(formula: Formula) -> bool:
    return formula[0] == "negative" or (formula[0] == "number" and formula[1] < 0)


def _is_whole(formula: Formula) -> bool:
    formula = formula[1] if formula[0] == "negative" else formula
    return formula[0] == "number" and formula[1].denominator == 1


def _is_power_of_literals(formula: Formula) -> bool:
    return formula[0] == "power" and formula[1][0] == formula[2][0] == "number"


def _is_single_function(formula: Formula) -> bool:
    """``\\cos\\frac{\\pi}{3}``: one function, of literals and pi."""
    inside = [part[0] for argument in formula[1:] for part in parts(argument)]
    simple = {"number", "constant", "degrees", "quotient", "product"}
    return formula[0] in FUNCTIONS | {"root", "log"} and simple.issuperset(inside)


def _additions(formula: Formula) -> int:
    return sum(len(part) - 2 for part in parts(formula) if part[0] == "sum")


def _operations(formula: Formula) -> int:
    free = LEAVES | {"negative", "degrees"}
    flat = {"sum", "product"}
    return sum(
        len(part) - 2 if part[0] in flat else 1 for part in parts(formula) if part[0] not in free
    )


def _pending(formula: Formula) -> int:
    """Number of literals in a sum or product that already has one."""
    return sum(
        max(0, sum(term[0] == "number" for term in part[1:]) - 1)
        for part in parts(formula)
        if part[0] in ("sum", "product")
    )


def same_value(gold: Value, answer: Value, *, percent: bool, tolerance: float = 0.0) -> bool:
    """Whether two literals are equal, or no further apart than ``tolerance``.

    A percent sign is a unit, so 50 % equals 50. With ``percent`` it is also a hundredth: 50 %
    equals 0.5 as well.
    """
    left, right = gold.formula[1], answer.formula[1]
    if left == right:
        return True
    # |gold - answer| <= tolerance   OlympiadBench, arXiv:2402.14008; the decimal, not its float
    if tolerance and abs(left - right) <= Fraction(str(tolerance)):
        return True
    if percent and gold.percent != answer.percent:
        hundredth = Fraction(1, 100)
        return left * (hundredth if gold.percent else 1) == right * (
            hundredth if answer.percent else 1
        )
    return False
