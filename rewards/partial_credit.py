"""Partial credit of CoRe (arXiv:2601.21600): word overlap of an answer with the gold answer."""

import re
from fractions import Fraction

from coterie.datatypes import AnswerKind
from coterie.rewards.grading.answers.formula import Formula
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.values import value_of
from coterie.rewards.overlap import MAX_LENGTH, multiset_f1, squad_f1

_LONGEST_NUMBER = 512
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WRAPPER = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\(?:text|mathrm)\s*\{([^{}]*)\}")
_NUMBER = re.compile(r"([-+]?\d{1,40}(?:\.\d{1,40})?|[-+]?\.\d{1,40})(?:/(\d{1,40}))?")
_FRACTION = re.compile(r"([-+]?)\\[dt]?frac\{([-+]?\d{1,40})\}\{(\d{1,40})\}")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


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
    answer, gold = _simplify(answer, kind), _simplify(gold, kind)
    if kind not in ("text", "judged") and not numeric_overlap:
        gold_number = _number(gold)
        if gold_number is not None:
            return float(_number(answer) == gold_number)
        if (formula := _formula(gold)) is not None:
            return float(_formula(answer) == formula)
    return multiset_f1(_TOKEN.findall(answer), _TOKEN.findall(gold))


def _simplify(answer: str, kind: AnswerKind) -> str:
    answer = _WRAPPER.sub(r"\1", answer.replace("−", "-")).replace("\\$", "").replace("$", "")
    if kind in ("math", "number"):
        answer = _THOUSANDS.sub("", answer)
    # In a formula an exclamation mark is a factorial.
    ends = " \t\r\n*.。" + ("" if kind in ("math", "number", "list") else "!")
    return " ".join(answer.strip(ends).casefold().split())


def _formula(answer: str) -> Formula | None:
    r"""A number in another form, such as ``45^\circ`` or ``3\sqrt{2}``, without its unit."""
    value = value_of(plain(answer)) if len(answer) <= _LONGEST_NUMBER else None
    return value.formula if value is not None and value.is_number else None


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
