"""A reasoning problem and its reference answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

AnswerKind = Literal["math", "number", "choice", "list", "text", "qa", "code", "judged"]


@dataclass(frozen=True)
class Problem:
    """One question with one gold answer; plain data, so it can be stored and hashed.

    Example: ``Problem(id="chains:17", question="7 + 8 - 3 =", gold="2", kind="number")``
    """

    id: str
    """Unique within its source and stable between runs."""
    question: str
    """The text that a model reads; choices, if any, already stand in it as ``A. ...`` lines."""
    gold: str
    """The reference answer: LaTeX for ``math``, the letter for ``choice``, comma-separated for
    ``list``, a solution for ``code``."""
    kind: AnswerKind = "math"
    """How answers are compared: ``math`` and ``number`` by value, ``choice`` by letter or option
    text, ``list`` as an unordered collection of values, ``text`` as a normalised string, ``qa`` as
    SQuAD does. ``code`` is run against the tests in ``meta``, ``judged`` is read by a model."""
    choices: tuple[str, ...] = ()
    """Option texts in the order of their letters (``choice`` only)."""
    percent: bool = False
    """Whether 50 % also equals 0.5 (a property of the data set)."""
    tolerance: float = 0.0
    """Numbers that are no further than this from a number of the gold answer equal it (``math``,
    ``number`` and ``list``)."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Anything else worth keeping (level, family, source); JSON values only."""
