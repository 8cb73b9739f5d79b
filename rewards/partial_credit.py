"""How close a wrong answer comes to the gold answer, by its tokens."""

import re
from collections import Counter
from fractions import Fraction

from rewards.squad_f1 import squad_f1
from vocabulary import AnswerKind

MAX_LENGTH = 2000
"""Characters. Longer answers earn nothing: no gold answer comes near."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WRAPPER = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\(?:text|mathrm)\s*\{([^{}]*)\}")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"([-+]?\d{1,40}(?:\.\d{1,40})?|[-+]?\.\d{1,40})(?:/(\d{1,40}))?")
_FRACTION = re.compile(r"([-+]?)\\[dt]?frac\{([-+]?\d{1,40})\}\{(\d{1,40})\}")


def partial_credit(
    answer: str | None, gold: str, kind: AnswerKind, *, numeric_overlap: bool = False
) -> float:
    """Token multiset F1 of the normalised answers, in [0, 1]; 0 without an answer.

    Tokens are words and single punctuation marks (the reference code of CoRe, arXiv:2601.21600,
    which leaves partial credit undefined). Where the gold answer is one number, shared tokens say
    nothing about closeness: credit is then 1 if the values are equal and 0 otherwise, unless
    ``numeric_overlap`` asks for the F1 there too. Kind ``qa`` has the F1 of SQuAD; a program earns
    nothing for its wording.
    """
    if answer is None or len(answer) > MAX_LENGTH or len(gold) > MAX_LENGTH:
        return 0.0
    if kind == "qa":
        return squad_f1(answer, [gold])
    if kind == "code":
        return 0.0
    answer, gold = _normalise(answer, kind), _normalise(gold, kind)
    gold_number = None if kind in ("text", "judged") else _number(gold)
    if gold_number is not None and not numeric_overlap:
        return float(_number(answer) == gold_number)
    return _overlap(_TOKEN.findall(answer), _TOKEN.findall(gold))


def _overlap(answer: list[str], gold: list[str]) -> float:
    # F1 of the multisets = 2 |A n G| / (|A| + |G|)
    if not answer or not gold:
        return 0.0
    shared = (Counter(answer) & Counter(gold)).total()
    return 2 * shared / (len(answer) + len(gold))


def _normalise(answer: str, kind: AnswerKind) -> str:
    answer = _WRAPPER.sub(r"\1", answer.replace("−", "-")).replace("\\$", "").replace("$", "")
    if kind in ("math", "number"):
        answer = _THOUSANDS.sub("", answer)
    # In a formula an exclamation mark is a factorial.
    ends = " \t\r\n*.。" + ("" if kind in ("math", "number", "list") else "!")
    return " ".join(answer.strip(ends).casefold().split())


def _number(answer: str) -> Fraction | None:
    """The exact value of a plain number or fraction; forty digits bound its cost."""
    if match := _FRACTION.fullmatch(answer):
        sign, numerator, denominator = match.groups()
        top = Fraction(sign + "1") * Fraction(numerator)
    elif match := _NUMBER.fullmatch(answer):
        numerator, denominator = match.groups()
        top = Fraction(numerator)
    else:
        return None
    bottom = Fraction(denominator or 1)
    return top / bottom if bottom else None
