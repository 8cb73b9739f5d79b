"""Word overlap of an answer with the gold answer.

Exact match and token F1 follow SQuAD (arXiv:1606.05250). Exact match reads numbers as DROP does
(arXiv:1903.00161), and F1 has HotpotQA's rule for yes and no (arXiv:1809.09600). Partial credit is
CoRe's (arXiv:2601.21600).
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from coterie.datatypes import AnswerKind

MAX_LENGTH = 2000
"""Characters. Longer answers earn nothing: no gold answer comes near."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WRAPPER = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\(?:text|mathrm)\s*\{([^{}]*)\}")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"([-+]?\d{1,40}(?:\.\d{1,40})?|[-+]?\.\d{1,40})(?:/(\d{1,40}))?")
_FRACTION = re.compile(r"([-+]?)\\[dt]?frac\{([-+]?\d{1,40})\}\{(\d{1,40})\}")

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_VERDICTS = ("yes", "no", "noanswer")
_DASHES = str.maketrans("−–—", "---")
_NUMERAL = re.compile(r"(?:(?<!\S)[$€£(]?-[$€£]?)?(?:(?<!\w)\.)?\d+(?:[^\w\s]\d+)*")
"""Digits with their sign and what stands between them: ``-3.14``, ``7-5``, ``1/2``, ``.5``."""


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation and articles, single blanks between words."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    """Whether both are the same words in the same order, and there are any.

    Numbers keep their signs, points and bars, which are punctuation to SQuAD: 314 is not 3.14, 5
    not -5 and 12 not 1/2. The answer ``A`` is a word, though an article.
    """
    answer, gold = answer.translate(_DASHES), gold.translate(_DASHES)
    words = _words(answer)
    return bool(words) and words == _words(gold) and _numerals(answer) == _numerals(gold)


def _words(text: str) -> str:
    return normalise(text) or text.lower().translate(_PUNCTUATION).strip()


def _numerals(text: str) -> list[str]:
    found = _NUMERAL.findall(_THOUSANDS.sub("", text))
    return [re.sub("[$€£(]", "", numeral) for numeral in found]


def squad_f1(answer: str, golds: Sequence[str]) -> float:
    """The best F1 of ``answer`` against any gold answer, over multisets of words, in [0, 1].

    A yes, no or "noanswer" matches itself only. Signs, decimal points and fraction bars are
    punctuation here, so ``squad_f1("-3", ["3"]) == 1``.
    """
    return max((_f1(normalise(answer), normalise(gold)) for gold in golds), default=0.0)


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
    gold_number = None if kind in ("text", "judged") else _number(gold)
    if gold_number is not None and not numeric_overlap:
        return float(_number(answer) == gold_number)
    return _multiset_f1(_TOKEN.findall(answer), _TOKEN.findall(gold))


def _f1(answer: str, gold: str) -> float:
    if answer != gold and (answer in _VERDICTS or gold in _VERDICTS):
        return 0.0
    return _multiset_f1(answer.split(), gold.split())


def _multiset_f1(answer: list[str], gold: list[str]) -> float:
    # 2 |A n G| / (|A| + |G|)
    shared = (Counter(answer) & Counter(gold)).total()
    return 2 * shared / (len(answer) + len(gold)) if shared else 0.0


def _simplify(answer: str, kind: AnswerKind) -> str:
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
