"""Reasoning problems, and the interface of the scorer that grades their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

AnswerKind = Literal["math", "number", "choice", "list", "text", "qa", "code", "judged"]


@dataclass(frozen=True)
class Problem:
    """A question with its gold answer, as plain data.

    Example: ``Problem(id="chains:17", question="7 + 8 - 3 =", gold="2", kind="number")``
    """

    id: str
    """Unique within its source and stable between runs."""
    question: str
    """The text that a model reads, including choices as ``A. ...`` lines."""
    gold: str
    """The reference answer: LaTeX for ``math``, the letter for ``choice``, comma-separated for
    ``list``, a solution for ``code``."""
    kind: AnswerKind = "math"
    """How answers are compared: ``math`` and ``number`` by value, ``choice`` by letter or option
    text, ``list`` as an unordered collection of values, ``text`` as a normalized string, ``qa``
    like SQuAD. ``code`` runs against the tests in ``meta``, and a model grades ``judged``."""
    choices: tuple[str, ...] = ()
    """Texts of the options in the order of their letters (only for ``choice``)."""
    percent: bool = False
    """Whether 50 % also equals 0.5 (a property of the data set)."""
    tolerance: float = 0.0
    """Largest difference at which numbers equal those of the gold answer (``math``, ``number`` and
    ``list``)."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Other data (level, family, source); JSON values only."""
    alternatives: tuple[str, ...] = ()
    """Further right answers."""

    @property
    def golds(self) -> tuple[str, ...]:
        """Every gold answer, the reference first."""
        return (self.gold, *self.alternatives)


@dataclass(frozen=True)
class Verdict:
    """The result of comparing a response with the gold answer."""

    correct: bool
    """Whether the answer is right, for accuracies, votes and thresholds."""
    answer: str | None
    """The extracted answer as written; None if the response states none, for example because it
    breaks off. Such a response is wrong."""
    method: str
    """The rule that decided: ``none`` (no answer is stated), ``string``, ``rational``, ``choice``,
    ``list``, ``algebra``, ``exact-match``, ``timeout``, ``error``, ``refused`` (too long, or the
    exponent is too large); for programs ``tests`` and ``quit``; for a judge ``judge``,
    ``not-attempted`` and ``not-graded``; ``math-verify``; ``checker`` for a custom checker."""
    partial: float = 0.0
    """Credit of a custom checker for a wrong answer, from 0 to below 1."""

    @property
    def credit(self) -> float:
        """1 for a right answer, else its partial credit."""
        return 1.0 if self.correct else self.partial


@dataclass(frozen=True)
class ScoreRequests:
    """The scores that a step of an environment will request."""

    checks: tuple[tuple[str, Problem], ...] = ()
    """(response text, problem)"""
    embeddings: tuple[str, ...] = ()
    """Texts to embed."""


class Scorer(Protocol):
    """Grades responses and embeds texts, with a cache."""

    def check(self, response: str, problem: Problem) -> Verdict:
        """Extract the answer of ``response`` and compare it with the gold answer."""
        ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors (n, D), one for each text."""
        ...

    def prefetch(self, requests: Sequence[ScoreRequests]) -> None:
        """Compute later requests in one batch."""
        ...
