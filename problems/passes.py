"""Endless passes over one source: the problem at a place is a function of that integer."""

from collections.abc import Callable
from functools import lru_cache

from coterie.datatypes import Problem, UserError
from coterie.problems.canonical import problem_key
from coterie.problems.source import ProblemSource, keys_of, shuffle

# Excluded problems of a generator are replaced from indices that no place reaches.
_FAR = 2**40
_ATTEMPTS = 1000
_UNFIT_ATTEMPTS = 50


class Passes:
    """The problems of one source by place, from 0 without an end.

    Each pass over a finite source has a new seeded order; a generator is read by index. Problems
    whose canonical form is in ``exclude`` are skipped.
    """

    def __init__(self, source: ProblemSource, seed: int, exclude: frozenset[str]) -> None:
        """Raises:
        UserError: no problem is left for training.
        """
        self.source = source
        self._seed = seed
        self._exclude = exclude
        self._kept: list[int] | None = None
        self._unfit: Callable[[Problem], bool] | None = None
        self._why = ""
        if source.size is not None:
            keys = keys_of(source)
            self._kept = [index for index, key in enumerate(keys) if key not in exclude]
            if not self._kept:
                raise UserError(
                    f"{source.name}: none of its {source.size} problems is left to train on once "
                    "those held out for evaluation are removed; name another evaluation set or "
                    "hold out fewer problems"
                )
        self._order = lru_cache(maxsize=2)(self._permutation)
        if self._kept is None:
            self.at(0)

    @property
    def available(self) -> int | None:
        """Number of different rows; None for a generator."""
        return None if self._kept is None else len(self._kept)

    def leave_out(self, unfit: Callable[[Problem], bool], why: str, place: int = 0) -> int:
        """Skip problems that are ``unfit`` from now on.

        Args:
            unfit: whether a problem is skipped.
            why: end of the error message if no problem is left.
            place: the next place of a generator, which is tried.

        Returns:
            Number of skipped problems of a finite source; 0 for a generator, which replaces them.

        Raises:
            UserError: no problem is left.
        """
        if self._kept is None:
            self._unfit, self._why = unfit, why
            self.at(place)
            return 0
        kept = [index for index in self._kept if not unfit(self.source[index])]
        if not kept:
            raise UserError(f"{self.source.name}: {why}")
        dropped = len(self._kept) - len(kept)
        self._kept = kept
        self._order.cache_clear()
        return dropped

    def at(self, place: int) -> Problem:
        """Return the problem at any place."""
        if self._kept is not None:
            turn, position = divmod(place, len(self._kept))
            return self.source[self._order(turn)[position]]
        for attempt in range(_ATTEMPTS):
            problem = self.source[place + attempt * _FAR]
            if self._exclude and problem_key(problem) in self._exclude:
                continue
            if self._unfit is None or not self._unfit(problem):
                return problem
            if attempt == _UNFIT_ATTEMPTS:
                raise UserError(f"{self.source.name}: {self._why}")
        raise UserError(
            f"{self.source.name}: nearly all of its problems are held out for evaluation; hold out "
            "fewer with --problems.held-out, or widen the generator's options"
        )

    def _permutation(self, turn: int) -> list[int]:
        assert self._kept is not None
        order = list(self._kept)
        shuffle(order, self._seed, "order", turn)
        return order
