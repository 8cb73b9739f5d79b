"""A finite source: problems held in memory."""

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property

from problems.canonical import problem_key
from vocabulary import Problem


class ProblemSet:
    """A finite :class:`problems.source.ProblemSource`."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self._name = name
        self._problems = tuple(problems)

    @property
    def name(self) -> str:
        return self._name

    @property
    def size(self) -> int:
        return len(self._problems)

    @property
    def fingerprint(self) -> str:
        """Depends on questions, answers and their order; not on the kind of file they came in."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256()
        for problem in self._problems:
            content = (
                problem.question,
                problem.gold,
                problem.kind,
                problem.choices,
                problem.percent,
            )
            digest.update(json.dumps(content).encode() + b"\n")
        return digest.hexdigest()

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Canonical form of each problem."""
        return tuple(problem_key(problem) for problem in self._problems)

    def __getitem__(self, index: int) -> Problem:
        if not 0 <= index < len(self._problems):
            raise IndexError(f"{self._name} has problems 0 to {len(self._problems) - 1}")
        return self._problems[index]

    def __len__(self) -> int:
        return len(self._problems)
