"""Partial credit of CoRe (arXiv:2601.21600): word overlap of an answer with the gold answer."""

import re
from fractions import Fraction

from coterie.datatypes import AnswerKind
from coterie.rewards.grading.answers.formula import Formula
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.values import value_of
from coterie.rewards.overlap import MAX_LENGTH, THOUSANDS, multiset_f1, squad_f1

_LONGEST_NUMBER = 512
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WRAPPER = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\(?:text|mathrm)\s*\{([^{}]*)\}")


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
        number = _number(gold)
        if number is not None:
            own = _number(answer)
            return float(own is not None and own[0] == number[0] and own[1] in ("", number[1]))
    return multiset_f1(_TOKEN.findall(answer), _TOKEN.findall(gold))


def _simplify(answer: str, kind: AnswerKind) -> str:
    answer = _WRAPPER.sub(r"\1", answer.replace("−", "-")).replace("\\$", "").replace("$", "")
    if kind in ("math", "number"):
        answer = THOUSANDS.sub("", answer)
    # In a formula an exclamation mark is a factorial.
    ends = " \t\r\n*.。" + ("" if kind in ("math", "number", "list") else "!")
    return " ".join(answer.strip(ends).casefold().split())


def _number(answer: str) -> tuple[Fraction | Formula, str] | None:
    r"""A number and its unit: the exact value, or a form such as ``3\sqrt{2}``."""
    value = value_of(plain(answer)) if len(answer) <= _LONGEST_NUMBER else None
    if value is None or not value.is_number:
        return None
    unit = "%" if value.percent else value.unit or value.behind.strip()
    return value.formula if value.literal is None else value.literal, unit
