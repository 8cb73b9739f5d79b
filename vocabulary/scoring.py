"""What environments ask of the scorer that is injected into them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vocabulary.problem import Problem


@dataclass(frozen=True)
class Verdict:
    """The outcome of checking one response against one gold answer."""

    correct: bool
    answer: str | None
    """The extracted answer as it was written; None where the response has none."""
    method: str
    """Which rule decided: ``none``, ``string``, ``rational``, ``choice``, ``list``,
    ``math-verify``, ``exact-match``, ``timeout``, ``error``, ``refused`` (too long or exponent too
    large); of programs ``tests`` and ``quit``; of a judge ``judge``, ``not-attempted`` and
    ``not-graded``."""


@dataclass(frozen=True)
class ScoreRequests:
    """Everything that one environment step is about to ask."""

    checks: tuple[tuple[str, Problem], ...] = ()
    """(response text, problem)"""
    embeddings: tuple[str, ...] = ()


class Scorer(Protocol):
    """Memoising, and pure as seen from outside: the same question has the same answer."""

    def check(self, response: str, problem: Problem) -> Verdict:
        """Extract the answer of ``response`` and compare it with the gold answer."""
        ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, D) unit vectors, one a text."""
        ...

    def prefetch(self, requests: Sequence[ScoreRequests]) -> None:
        """Compute in one batch what is about to be asked one by one."""
        ...
