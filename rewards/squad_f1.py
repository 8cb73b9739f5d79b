"""Exact match and token F1 of short answers, as SQuAD's evaluation computes them
(arXiv:1606.05250), with HotpotQA's rule for yes and no (arXiv:1809.09600)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_VERDICTS = ("yes", "no", "noanswer")


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation and articles, single blanks between words."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    """Whether both are the same words in the same order, and there are any."""
    return bool(normalise(answer)) and normalise(answer) == normalise(gold)


def squad_f1(answer: str, golds: Sequence[str]) -> float:
    """The best F1 of ``answer`` against any gold answer, over multisets of words, in [0, 1].

    A yes, no or "noanswer" matches itself only. Signs, decimal points and fraction bars are
    punctuation here, so ``squad_f1("-3", ["3"]) == 1``.
    """
    return max((_f1(normalise(answer), normalise(gold)) for gold in golds), default=0.0)


def _f1(answer: str, gold: str) -> float:
    if answer != gold and (answer in _VERDICTS or gold in _VERDICTS):
        return 0.0
    answer_words, gold_words = answer.split(), gold.split()
    # F1 of the multisets = 2 |A n G| / (|A| + |G|)
    shared = (Counter(answer_words) & Counter(gold_words)).total()
    return 2 * shared / (len(answer_words) + len(gold_words)) if shared else 0.0
