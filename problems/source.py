"""Sources of problems: the protocol, finite sets in memory, and the base of generators."""

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Protocol

from coterie.datatypes import Problem, derive_seed
from coterie.problems.canonical import problem_key


class ProblemSource(Protocol):
    """Problems by index; an index always gives the same problem.

    Finite sets have a ``size``. Endless generators have size ``None`` and accept every index >= 0.
    """

    @property
    def name(self) -> str:
        """The user's name of the source."""
        ...

    @property
    def size(self) -> int | None:
        """Number of problems; None: the source is an endless generator."""
        ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the canonical content, or of the generator's name and settings."""
        ...

    def __getitem__(self, index: int) -> Problem:
        """Return the problem at ``index``; IndexError past the end of a finite set."""
        ...


class ProblemSet:
    """Implements :class:`ProblemSource` for a finite set in memory."""

    def __init__(self, name: str, problems: Iterable[Problem], notes: tuple[str, ...] = ()) -> None:
        self.name = name
        self._problems = tuple(problems)
        self.notes = notes
        """Notes for the user about interpretations that are not obvious."""

    @property
    def size(self) -> int:
        return len(self._problems)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of questions, answers and their order; it does not depend on the file format."""
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
        """The canonical form of each problem."""
        return tuple(problem_key(problem) for problem in self._problems)

    def __getitem__(self, index: int) -> Problem:
        if not 0 <= index < len(self._problems):
            raise IndexError(f"{self.name} has problems 0 to {len(self._problems) - 1}")
        return self._problems[index]

    def __len__(self) -> int:
        return len(self._problems)


class Generated:
    """Base of endless generators, which implement :class:`ProblemSource`.

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
        """Return the random generator of one problem."""
        if index < 0:
            raise IndexError(f"{self.name} starts at index 0, not {index}")
        # Only random() itself gives the same numbers in every version of Python.
        return random.Random(derive_seed(self.settings.seed, self.name, index))


class Interleaved:
    """Implements :class:`ProblemSource` for several sources as one endless source, which takes a
    problem of each in turn and begins finite ones again."""

    size = None

    def __init__(self, sources: Sequence[ProblemSource]) -> None:
        self._sources = sources

    @property
    def name(self) -> str:
        """The names of all sources."""
        return " ".join(source.name for source in self._sources)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the fingerprints of all sources."""
        text = json.dumps([source.fingerprint for source in self._sources])
        return hashlib.sha256(text.encode()).hexdigest()

    def __getitem__(self, index: int) -> Problem:
        turn, which = divmod(index, len(self._sources))
        source = self._sources[which]
        return source[turn if source.size is None else turn % source.size]


class Renamed:
    """Implements :class:`ProblemSource` for a generator whose ids get a prefix."""

    size = None

    def __init__(self, source: ProblemSource, prefix: str) -> None:
        self.name, self.fingerprint = source.name, source.fingerprint
        self._source, self._prefix = source, prefix

    def __getitem__(self, index: int) -> Problem:
        problem = self._source[index]
        return replace(problem, id=f"{self._prefix}/{problem.id}")


def with_distinct_ids(
    sources: Sequence[ProblemSource], names: Sequence[str]
) -> tuple[ProblemSource, ...]:
    """Return ``sources`` with the name of a source before its ids, where two sources call their
    problems alike (``train:0`` of two files ``train.jsonl``).

    Ids without a colon are the questions themselves, so equal ids name the same problem.
    """
    stems = [source[0].id.rpartition(":")[0] for source in sources]
    distinct: list[ProblemSource] = []
    for source, stem, name in zip(sources, stems, names, strict=True):
        if not stem or stems.count(stem) == 1:
            distinct.append(source)
        elif isinstance(source, ProblemSet):
            problems = map(source.__getitem__, range(source.size))
            renamed = (replace(problem, id=f"{name}/{problem.id}") for problem in problems)
            distinct.append(ProblemSet(source.name, renamed, source.notes))
        else:
            distinct.append(Renamed(source, name))
    return tuple(distinct)


def keys_of(source: ProblemSource) -> tuple[str, ...]:
    """Return the canonical form of each problem of a finite source."""
    if isinstance(source, ProblemSet):
        return source.keys
    assert source.size is not None
    return tuple(problem_key(source[index]) for index in range(source.size))


def shuffle(items: list[int], *stream: int | str) -> None:
    """Shuffle ``items`` in place by the random stream of that name.

    This is Fisher-Yates on ``random()``, whose numbers are the same in every version of Python.
    """
    rng = random.Random(derive_seed(*stream))
    for last in range(len(items) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        items[last], items[other] = items[other], items[last]
