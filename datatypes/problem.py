"""A reasoning problem, and what environments ask of the scorer that judges answers to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

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
    alternatives: tuple[str, ...] = ()
    """Further gold answers: whoever states any of them, or ``gold``, is right."""

    @property
    def golds(self) -> tuple[str, ...]:
        """Every gold answer, the reference first."""
        return (self.gold, *self.alternatives)


@dataclass(frozen=True)
class Verdict:
    """The outcome of checking one response against one gold answer."""

    correct: bool
    """Whether the answer is right: what accuracies, votes and thresholds count."""
    answer: str | None
    """The extracted answer as it was written; None where the response has none."""
    method: str
    """Which rule decided: ``none``, ``string``, ``rational``, ``choice``, ``list``,
    ``algebra``, ``exact-match``, ``timeout``, ``error``, ``refused`` (too long or exponent too
    large); of programs ``tests`` and ``quit``; of a judge ``judge``, ``not-attempted`` and
    ``not-graded``; ``math-verify``, and ``checker`` of a user's own."""
    partial: float = 0.0
    """What a checker of one's own gives an answer that is not right, from 0 to below 1."""

    @property
    def credit(self) -> float:
        """What the answer earns where right answers earn 1: 1, or its partial credit."""
        return 1.0 if self.correct else self.partial


@dataclass(frozen=True)
class ScoreRequests:
    """Everything that an environment step is about to ask of the scorer."""

    checks: tuple[tuple[str, Problem], ...] = ()
    """(response text, problem)"""
    embeddings: tuple[str, ...] = ()


class Scorer(Protocol):
    """Judges responses and embeds texts. It memoises: the same question has the same answer."""

    def check(self, response: str, problem: Problem) -> Verdict:
        """Extract the answer of ``response`` and compare it with the gold answer."""
        ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, D) unit vectors, one a text."""
        ...

    def prefetch(self, requests: Sequence[ScoreRequests]) -> None:
        """Compute in one batch what is about to be asked one by one."""
        ...
