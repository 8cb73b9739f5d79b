"""Sources of problems: the protocol, a finite set in memory, and the base of generators."""

import hashlib
import json
import random
from collections.abc import Iterable
from dataclasses import asdict
from functools import cached_property
from typing import Any, Protocol

from coterie.datatypes import Problem, derive_seed
from coterie.problems.canonical import problem_key


class ProblemSource(Protocol):
    """Problems by index: the same index is the same problem, always.

    A finite set has a ``size``; a generator has ``None`` and answers every index >= 0.
    """

    @property
    def name(self) -> str:
        """The text by which the user named it."""
        ...

    @property
    def size(self) -> int | None:
        """Number of problems, or None when they are generated without end."""
        ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the canonical content, or of the generator's name and settings."""
        ...

    def __getitem__(self, index: int) -> Problem:
        """The problem at ``index``; IndexError past the end of a finite set."""
        ...


class ProblemSet:
    """Implements :class:`ProblemSource` for a finite set in memory."""

    def __init__(self, name: str, problems: Iterable[Problem], notes: tuple[str, ...] = ()) -> None:
        self.name = name
        self._problems = tuple(problems)
        self.notes = notes
        """What was read where that is not obvious, for the user."""

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
            content = [problem.question, problem.gold, problem.kind]
            content += [problem.choices, problem.percent]
            if problem.alternatives:
                content += [problem.alternatives]
            digest.update(json.dumps(content).encode() + b"\n")
        return digest.hexdigest()

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Canonical form of each problem."""
        return tuple(problem_key(problem) for problem in self._problems)

    def __getitem__(self, index: int) -> Problem:
        if not 0 <= index < len(self._problems):
            raise IndexError(f"{self.name} has problems 0 to {len(self._problems) - 1}")
        return self._problems[index]

    def __len__(self) -> int:
        return len(self._problems)


class Generated:
    """Base of generators, which implement :class:`ProblemSource` without end.

    A subclass sets ``name`` and writes ``__getitem__``.
    """

    name: str
    size = None

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the generator's name and settings."""
        text = json.dumps([self.name, 1, asdict(self.settings)])
        return hashlib.sha256(text.encode()).hexdigest()

    def stream(self, index: int) -> random.Random:
        """The random numbers of one problem."""
        if index < 0:
            raise IndexError(f"{self.name} starts at index 0, not {index}")
        # Only random() itself promises the same numbers in every version of Python.
        return random.Random(derive_seed(self.settings.seed, self.name, index))


def keys_of(source: ProblemSource) -> tuple[str, ...]:
    """Canonical form of each problem of a finite source."""
    if isinstance(source, ProblemSet):
        return source.keys
    assert source.size is not None
    return tuple(problem_key(source[index]) for index in range(source.size))


def shuffle(items: list[int], *stream: int | str) -> None:
    """Put ``items`` into the order that the random stream of that name gives.

    Fisher-Yates on ``random()``, whose numbers every version of Python keeps.
    """
    rng = random.Random(derive_seed(*stream))
    for last in range(len(items) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        items[last], items[other] = items[other], items[last]
