"""Decontamination: word n-grams that a training question shares with evaluation questions.

The usual criterion is 13 words in a row (arXiv:2005.14165, appendix C).
"""

import re
from collections.abc import Iterable

from problems.canonical import canonical

WORDS_IN_A_ROW = 13
_WORD = re.compile(r"\w+")


class OverlapIndex:
    """The n-grams of a set of evaluation questions.

    A question with fewer than n words is one n-gram as a whole, so it only meets its equal.
    """

    def __init__(self, questions: Iterable[str], n: int = WORDS_IN_A_ROW) -> None:
        self.n = n
        self._grams = {gram for question in questions for gram in self._grams_of(question)}

    def meets(self, question: str) -> bool:
        """Whether ``question`` shares an n-gram with any indexed question."""
        return any(gram in self._grams for gram in self._grams_of(question))

    def _grams_of(self, question: str) -> Iterable[tuple[str, ...]]:
        words = _WORD.findall(canonical(question))
        count = max(len(words) - self.n + 1, 1)
        return (tuple(words[start : start + self.n]) for start in range(count))
