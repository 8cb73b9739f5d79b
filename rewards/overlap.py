"""Word overlap of an answer with the gold answer.

Exact match and token F1 follow SQuAD (arXiv:1606.05250). Exact match reads numbers as DROP does
(arXiv:1903.00161), and F1 has HotpotQA's rule for yes and no (arXiv:1809.09600).
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

MAX_LENGTH = 2000
"""Characters. Longer answers earn nothing: no gold answer comes near."""

THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_VERDICTS = ("yes", "no", "noanswer")
_NUMERAL = re.compile(r"(?:(?<!\S)[$€£(]?-[$€£]?)?(?:(?<!\w)\.)?\d+(?:[^\w\s]\d+)*")
"""Digits with their sign and what stands between them: ``-3.14``, ``7-5``, ``1/2``, ``.5``."""


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation and articles, single blanks between words."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    """Whether both are the same words in the same order, and there are any.

    Numbers keep their signs, points and bars, which are punctuation to SQuAD: 314 is not 3.14, 5
    not -5 and 12 not 1/2. The answer ``A`` is a word, though an article. Punctuation beyond ASCII
    is punctuation, too: ``Ocean’s 8`` and ``《活着》。`` are ``Ocean's 8`` and ``活着``.
    """
    answer, gold = _in_ascii(answer), _in_ascii(gold)
    words = _words(answer)
    return bool(words) and words == _words(gold) and _numerals(answer) == _numerals(gold)


def _in_ascii(text: str) -> str:
    """The text with ASCII's dash and quote for other dashes, quotes, brackets and stops."""
    return text if text.isascii() else "".join(map(_sign_in_ascii, text))


def _sign_in_ascii(sign: str) -> str:
    category = unicodedata.category(sign)
    if category == "Pd" or sign == "−":
        return "-"
    # A per mille is no per cent.
    is_punctuation = (category[0] == "P" and sign not in "‰‱") or sign == "´"
    return "'" if is_punctuation and not sign.isascii() else sign


def _words(text: str) -> str:
    return normalise(text) or text.lower().translate(_PUNCTUATION).strip()


def _numerals(text: str) -> list[str]:
    found = _NUMERAL.findall(THOUSANDS.sub("", text))
    return [re.sub("[$€£(]", "", numeral) for numeral in found]


def squad_f1(answer: str, golds: Sequence[str]) -> float:
    """The best F1 of ``answer`` against any gold answer, over multisets of words, in [0, 1].

    A yes, no or "noanswer" matches itself only. Signs, decimal points and fraction bars are
    punctuation here, so ``squad_f1("-3", ["3"]) == 1``.
    """
    return max((_f1(normalise(answer), normalise(gold)) for gold in golds), default=0.0)


def _f1(answer: str, gold: str) -> float:
    if answer != gold and (answer in _VERDICTS or gold in _VERDICTS):
        return 0.0
    return multiset_f1(answer.split(), gold.split())


def multiset_f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    """The F1 of two multisets, in [0, 1]."""
    # 2 |A n G| / (|A| + |G|)
    shared = (Counter(answer) & Counter(gold)).total()
    return 2 * shared / (len(answer) + len(gold)) if shared else 0.0
