"""The stream of training problems: which problem is drawn at a cursor."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from coterie.datatypes import Problem, UserError
from coterie.problems.canonical import problem_key
from coterie.problems.curriculum import Curriculum, Difficulty, Order, Played
from coterie.problems.mixture import counts_of_epoch
from coterie.problems.passes import Passes
from coterie.problems.source import Interleaved, ProblemSource, shuffle

GENERATED_EPOCH = 1024
"""Problems of a generator in an epoch."""


@dataclass(frozen=True)
class Position:
    """Where a stream stands."""

    cursor: int
    """Number of problems so far."""
    difficulty: Difficulty = field(default_factory=dict)
    """What its order by difficulty depends on."""


class ProblemStream:
    """An endless stream of training problems of one source or several.

    The problem at a cursor depends on the cursor alone, and under an order by difficulty also on
    what :meth:`measure` was told before its epoch began. Each pass over a finite source has a new
    seeded order; a generator is read by index. Every epoch has the same number of problems of each
    source, in a seeded order, and no problem of a source is repeated before all of them were drawn.
    """

    def __init__(
        self,
        source: ProblemSource | tuple[ProblemSource, ...],
        seed: int = 0,
        exclude: frozenset[str] = frozenset(),
        epoch_size: int | None = None,
        *,
        weights: Sequence[float] | None = None,
        order: Order = "shuffled",
    ) -> None:
        """
        Args:
            source: one source or several.
            seed: of all orders.
            exclude: canonical forms of problems that are skipped.
            epoch_size: problems in an epoch, the unit of schedules; default: one pass of every
                finite source, 1024 problems of every generator.
            weights: of the sources, in proportion to which an epoch is divided; default: their
                problems in an epoch of the default size.
            order: of the problems within an epoch; by difficulty for finite sources.

        Raises:
            UserError: no problem is left for training, or an epoch has none of a source.
        """
        self.sources = source if isinstance(source, tuple) else (source,)
        self._parts = [Passes(each, seed, exclude) for each in self.sources]
        self._seed, self._weights = seed, weights
        self._cursor = 0
        self._curriculum = None if order == "shuffled" else Curriculum(order)
        self._sorted: tuple[int, list[int]] | None = None
        """(epoch, its positions in order) under an order by difficulty."""
        self.epoch_size = epoch_size or sum(self._sizes())
        self._slots = lru_cache(maxsize=2)(self._mixed)
        self._counts = self._count()

    @property
    def source(self) -> ProblemSource:
        """The source, or all sources as one, which has no end."""
        return self.sources[0] if len(self.sources) == 1 else Interleaved(self.sources)

    @property
    def available(self) -> int | None:
        """Number of different training rows of finite sources; None if all are generators."""
        finite = [part.available for part in self._parts if part.available is not None]
        return sum(finite) if finite else None

    def leave_out(self, unfit: Callable[[Problem], bool], why: str) -> int:
        """Skip problems that are ``unfit`` from now on.

        Args:
            unfit: whether a problem is skipped.
            why: end of the error message if no problem of a source is left.

        Returns:
            Number of skipped problems of finite sources; 0 for a generator, which replaces them.

        Raises:
            UserError: no problem of a source is left.
        """
        is_default = self.epoch_size == sum(self._sizes())
        dropped = sum(part.leave_out(unfit, why, self._cursor) for part in self._parts)
        if is_default:
            self.epoch_size = sum(self._sizes())
        self._counts = self._count()
        self._slots.cache_clear()
        self._sorted = None
        return dropped

    @property
    def cursor(self) -> int:
        """Number of problems so far; setting it continues there."""
        return self._cursor

    @cursor.setter
    def cursor(self, cursor: int) -> None:
        if cursor < 0:
            raise ValueError(f"a cursor counts problems, so it cannot be {cursor}")
        self._cursor = cursor

    @property
    def position(self) -> Position:
        """The cursor, and what the order depends on; setting it continues there."""
        return Position(self._cursor, self._curriculum.difficulty if self._curriculum else {})

    @position.setter
    def position(self, position: Position) -> None:
        self.cursor = position.cursor
        if self._curriculum is not None:
            self._curriculum.difficulty = position.difficulty
            self._sorted = None

    @property
    def epoch(self) -> int:
        """Number of completed epochs."""
        return self._cursor // self.epoch_size

    def take(self, n: int) -> list[Problem]:
        """Return the next ``n`` problems and move the cursor."""
        taken: list[Problem] = []
        for _ in range(n):
            if self._curriculum is not None and self._cursor % self.epoch_size == 0:
                self._curriculum.begin_epoch()
                self._sorted = None
            taken.append(self.at(self._cursor))
            self._cursor += 1
        return taken

    def at(self, cursor: int) -> Problem:
        """Return the problem at any cursor without moving it.

        Under an order by difficulty this is exact within the epoch that is being drawn; in others
        it holds for what was measured so far.
        """
        if self._curriculum is None:
            return self._drawn(cursor)
        epoch, position = divmod(cursor, self.epoch_size)
        if self._sorted is None or self._sorted[0] != epoch:
            first = epoch * self.epoch_size
            problems = [self._drawn(first + place) for place in range(self.epoch_size)]
            self._sorted = epoch, self._curriculum.sort(problems)
        return self._drawn(epoch * self.epoch_size + self._sorted[1][position])

    @property
    def by_difficulty(self) -> bool:
        """Whether the order depends on what was measured."""
        return self._curriculum is not None

    def measure(self, played: Mapping[str, Played]) -> None:
        """Note what a step measured, which orders later epochs.

        Args:
            played: problem id -> what was measured.
        """
        assert self._curriculum is not None
        self._curriculum.measure(played)

    def forms(self, n: int) -> frozenset[str]:
        """Return the canonical forms of the problems of finite sources among the first ``n``;
        under an order by difficulty, of all epochs that these begin."""
        epochs, rest = divmod(n, self.epoch_size)
        if rest and self._curriculum is not None:
            epochs, rest = epochs + 1, 0
        extra = Counter(part for part, _ in self._slots(epochs)[:rest])
        return frozenset(
            problem_key(part.at(place))
            for index, part in enumerate(self._parts)
            for place in range(
                min(part.available or 0, epochs * self._counts[index] + extra[index])
            )
        )

    def _drawn(self, cursor: int) -> Problem:
        """The problem at a cursor of the shuffled stream."""
        if len(self._parts) == 1:
            return self._parts[0].at(cursor)
        epoch, position = divmod(cursor, self.epoch_size)
        part, place = self._slots(epoch)[position]
        return self._parts[part].at(place)

    def _mixed(self, epoch: int) -> list[tuple[int, int]]:
        """(source, place in its passes) of each problem of an epoch."""
        sources = [part for part, count in enumerate(self._counts) for _ in range(count)]
        shuffle(sources, self._seed, "mixture", epoch)
        places = [epoch * count for count in self._counts]
        slots: list[tuple[int, int]] = []
        for part in sources:
            slots.append((part, places[part]))
            places[part] += 1
        return slots

    def _sizes(self) -> list[int]:
        """Problems of each source in an epoch of the default size."""
        return [part.available or GENERATED_EPOCH for part in self._parts]

    def _count(self) -> list[int]:
        """Problems of each source in an epoch."""
        counts = counts_of_epoch(self._weights or self._sizes(), self.epoch_size)
        if 0 in counts:
            name = self.sources[counts.index(0)].name
            raise UserError(
                f"an epoch of {self.epoch_size} problems has none of {name}: raise its weight in "
                "--problems.train, or --problems.epoch-size"
            )
        return counts
