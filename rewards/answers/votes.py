"""Which answers are the same vote."""

import hashlib
from collections.abc import Sequence

from rewards.answers.choice import letter_of
from rewards.answers.normalise import key, plain, words
from rewards.answers.rational import exact
from vocabulary import AnswerKind

_LONGEST = 512


def vote(answer: str | None, kind: AnswerKind, choices: Sequence[str] = ()) -> str | None:
    r"""A normal form: equal for answers of equal value as far as spelling and exact numbers show.

    ``1/2``, ``0.5`` and ``\frac{1}{2}`` are one vote; what needs algebra is told apart. None for
    none. Two texts too long to be answers are one vote only if they are the same text.
    """
    if answer is None or not answer.strip():
        return None
    if len(answer) > _LONGEST:
        return hashlib.sha256(answer.encode("utf-8", "replace")).hexdigest()
    if kind == "choice":
        return letter_of(answer, choices) or key(answer, fold=True)
    if kind == "text":
        return words(answer)
    number = exact(plain(answer))
    if number is None:
        return key(answer, fold=False)
    return f"{number.value}{'%' if number.percent else ''}"
