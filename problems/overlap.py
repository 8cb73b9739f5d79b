"""What training problems share with evaluation problems: an id, a wording, words in a row.

The usual criterion for words is 13 in a row (arXiv:2005.14165, appendix C).
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from problems.canonical import canonical, problem_key
from vocabulary import Problem

WORDS_IN_A_ROW = 13
_WORD = re.compile(r"\w+")

# Columns in which data sets number their items. A short number says nothing across two sets.
_ID_COLUMNS = ("id", "ID", "unique_id", "Record ID", "task_id")
_SHORTEST_ID = 8

Pair = tuple[int, int]
"""Places of a training problem and of the evaluation problem that it shares something with."""


class OverlapIndex:
    """The n-grams of a set of evaluation questions.

    A question with fewer than n words is one n-gram as a whole, so it only meets its equal.
    """

    def __init__(self, questions: Iterable[str], n: int = WORDS_IN_A_ROW) -> None:
        self.n = n
        self._first_with: dict[tuple[str, ...], int] = {}
        for place, question in enumerate(questions):
            for gram in self._grams_of(question):
                self._first_with.setdefault(gram, place)

    def meets(self, question: str) -> bool:
        """Whether ``question`` shares an n-gram with any indexed question."""
        return self.meeting(question) is not None

    def meeting(self, question: str) -> int | None:
        """The place of the indexed question with which ``question`` shares its first n-gram."""
        found = (self._first_with.get(gram) for gram in self._grams_of(question))
        return next((place for place in found if place is not None), None)

    def _grams_of(self, question: str) -> Iterable[tuple[str, ...]]:
        words = _WORD.findall(canonical(question))
        count = max(len(words) - self.n + 1, 1)
        return (tuple(words[start : start + self.n]) for start in range(count))


def same_id(training: Sequence[Problem], evaluation: Sequence[Problem]) -> list[Pair]:
    """Pairs whose data sets gave them the same id of eight characters or more in the same
    column."""
    return _joined(map(_ids, training), map(_ids, evaluation))


def same_form(training: Sequence[Problem], evaluation: Sequence[Problem]) -> list[Pair]:
    """Pairs with the same canonical form."""
    return _joined(
        ((problem_key(problem),) for problem in training),
        ((problem_key(problem),) for problem in evaluation),
    )


def shared_words(
    training: Sequence[Problem], evaluation: Sequence[Problem], n: int = WORDS_IN_A_ROW
) -> list[Pair]:
    """Pairs that share ``n`` words in a row."""
    index = OverlapIndex((problem.question for problem in evaluation), n)
    meetings = (index.meeting(problem.question) for problem in training)
    return [(place, met) for place, met in enumerate(meetings) if met is not None]


def _ids(problem: Problem) -> Iterator[tuple[str, str]]:
    for column in _ID_COLUMNS:
        value = problem.meta.get(column)
        if isinstance(value, str) and len(value) >= _SHORTEST_ID:
            yield column, value


def _joined(training: Iterable[Iterable], evaluation: Iterable[Iterable]) -> list[Pair]:
    """Pairs that have a key in common; each training problem once, with the first that it meets."""
    first_with: dict[object, int] = {}
    for place, keys in enumerate(evaluation):
        for key in keys:
            first_with.setdefault(key, place)
    pairs: list[Pair] = []
    for place, keys in enumerate(training):
        met = next((first_with[key] for key in keys if key in first_with), None)
        if met is not None:
            pairs.append((place, met))
    return pairs
