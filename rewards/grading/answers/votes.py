"""Groups of equal answers, for a vote."""

import hashlib
from collections.abc import Sequence

from coterie.datatypes import AnswerKind
from coterie.rewards.grading.answers.choice import letter_of
from coterie.rewards.grading.answers.normalise import is_words, key, words
from coterie.rewards.grading.answers.structure import Shape, readings, shape
from coterie.rewards.grading.answers.values import exact
from coterie.rewards.overlap import normalise

_LONGEST = 512


def vote(answer: str | None, kind: AnswerKind, choices: Sequence[str] = ()) -> str | None:
    r"""A normal form: equal for answers of equal value as far as spelling and exact numbers show.

    ``1/2``, ``0.5`` and ``\frac{1}{2}`` are one vote, and so are ``x = 5`` and ``5``, and ``1, 2``
    and ``2, 1``; what needs algebra is told apart. None for none. Two texts too long to be answers
    are one vote only if they are the same text.
    """
    if answer is None or not answer.strip():
        return None
    if len(answer) > _LONGEST:
        return hashlib.sha256(answer.encode("utf-8", "replace")).hexdigest()
    if kind == "choice":
        return letter_of(answer, choices) or key(answer, fold=True)
    if kind == "qa":
        return normalise(answer) or None
    if kind == "code":
        return key(answer, fold=False)
    if kind == "text" or is_words(answer):
        return words(answer)
    if kind == "list":
        return _form(readings(answer)[0], unordered=True)
    return _form(shape(answer), unordered=False)


def _form(part: Shape, *, unordered: bool) -> str:
    """The parts in their order, or sorted if order does not count."""
    # Unordered square brackets hold a collection, as in the comparison with a gold answer.
    if part.is_value:
        number = exact(part.text)
        # A percent sign is a unit.
        return key(part.text, fold=False) if number is None else str(number.literal)
    ends = "," if unordered and part.ends == "[]" else part.ends
    items = [_form(item, unordered=unordered) for item in part.items]
    return ends[0] + ";".join(sorted(items) if ends in (",", r"\cup") else items) + ends[-1]
