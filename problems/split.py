"""Overlap of training and evaluation problems, by id, canonical form or words in a row; splits.

The usual criterion for words is 13 in a row (arXiv:2005.14165, appendix C).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from coterie.datatypes import Problem, UserError
from coterie.problems.canonical import canonical, problem_key
from coterie.problems.source import ProblemSet, ProblemSource, keys_of, shuffle

WORDS_IN_A_ROW = 13
_WORD = re.compile(r"\w+")

# Columns in which data sets number their items. A short number says nothing across two sets.
_ID_COLUMNS = ("id", "ID", "unique_id", "Record ID", "task_id")
_SHORTEST_ID = 8

Pair = tuple[int, int]
"""Places of a training problem and of the evaluation problem that it shares something with."""


def same_id(training: Sequence[Problem], evaluation: Sequence[Problem]) -> list[Pair]:
    """Pairs whose data sets gave them the same id of eight characters or more in the same
    column."""
    return _join(map(_ids, training), map(_ids, evaluation))


def same_form(training: Sequence[Problem], evaluation: Sequence[Problem]) -> list[Pair]:
    """Pairs with the same canonical form."""
    return _join(
        ((problem_key(problem),) for problem in training),
        ((problem_key(problem),) for problem in evaluation),
    )


def shared_words(
    training: Sequence[Problem], evaluation: Sequence[Problem], n: int = WORDS_IN_A_ROW
) -> list[Pair]:
    """Pairs that share ``n`` words in a row; a question with fewer words meets only its equal."""
    return _join(
        (_grams(problem.question, n) for problem in training),
        (_grams(problem.question, n) for problem in evaluation),
    )


def _grams(question: str, n: int) -> Iterator[tuple[str, ...]]:
    """Its n-grams; one of fewer words as a whole."""
    words = _WORD.findall(canonical(question))
    count = max(len(words) - n + 1, 1)
    return (tuple(words[start : start + n]) for start in range(count))


def _ids(problem: Problem) -> Iterator[tuple[str, str]]:
    for column in _ID_COLUMNS:
        value = problem.meta.get(column)
        if isinstance(value, str) and len(value) >= _SHORTEST_ID:
            yield column, value


def _join(training: Iterable[Iterable], evaluation: Iterable[Iterable]) -> list[Pair]:
    """Pairs that have a key in common; each training problem once, with the first that it meets."""
    first_with: dict[object, int] = {}
    for place, keys in enumerate(evaluation):
        for key in keys:
            first_with.setdefault(key, place)
    pairs: list[Pair] = []
    for place, keys in enumerate(training):
        met = next((first_with[key] for key in keys if key in first_with), None)
        if met is not None:
            pairs.append((place, met))
    return pairs


HELD_OUT = 512
"""Evaluation problems of a generator, or of a set that also trains."""

_DRAWS_PER_PROBLEM = 20
_EXTRA_DRAWS = 1000
# Ten seconds or so.
_MOST_DRAWN = 100_000


def hold_out(
    evaluation: ProblemSource,
    training: ProblemSource,
    n: int | None = None,
    seed: int = 0,
) -> tuple[tuple[Problem, ...], frozenset[str]]:
    """(evaluation problems, canonical forms that training must not show).

    A published test set stays whole: what it shares with training is taken from training.

    Args:
        evaluation: drawn from in order if it is a generator; of a finite set a seeded choice is
            taken, or all of it where it has fewer.
        training: what is trained on; may be the same set.
        n: different problems; None: the whole of a finite set that is not the training set,
            :data:`HELD_OUT` otherwise.
        seed: of the choice.

    Raises:
        UserError: a generator cannot give ``n`` different problems, or one finite set for both
            would leave nothing to train on.
    """
    if evaluation.size is None:
        chosen = _draw(evaluation, n or HELD_OUT)
        return tuple(chosen.values()), frozenset(chosen)
    shared = training.fingerprint == evaluation.fingerprint
    n = n or (HELD_OUT if shared else evaluation.size)
    chosen = _choose(evaluation, n, seed)
    if shared and n >= len(set(keys_of(evaluation))):
        raise UserError(
            f"{evaluation.name} has {len(chosen)} different problems, so holding out {n} for "
            "evaluation leaves none to train on; lower --problems.held-out or name another source "
            "with --problems.eval"
        )
    return tuple(chosen.values()), frozenset(chosen)


def part(
    source: ProblemSet,
    which: Literal["train", "eval"],
    *,
    train_percent: int = 80,
    order: Literal["shuffled", "given"] = "shuffled",
    seed: int = 0,
) -> ProblemSet:
    """One side of a set that is published undivided.

    The first ``floor(size * train_percent / 100)`` problems train: of 963 at 80 % these are 770.

    Args:
        source: the whole set.
        which: the side.
        train_percent: share that trains.
        order: seeded, or as given, which is chronological for contests.
        seed: of that order.

    Raises:
        UserError: the side is empty.
    """
    indices = list(range(source.size))
    if order == "shuffled":
        shuffle(indices, seed, "part")
    cut = source.size * train_percent // 100
    wanted = indices[:cut] if which == "train" else indices[cut:]
    if not wanted:
        raise UserError(f"{source.name}: its {which} part is empty at {train_percent} % training")
    return _subset(source, f"{source.name}#{which}", sorted(wanted))


def sample(
    source: ProblemSource, n: int, seed: int = 0, exclude: frozenset[str] = frozenset()
) -> ProblemSource:
    """Return at most ``n`` problems that are not excluded.

    Args:
        source: where the problems come from. A set is sampled by ``seed``; of a generator, which
            has no end, the first problems are taken.
        n: how many problems.
        seed: seeds the choice.
        exclude: keys of problems to leave out, see :func:`coterie.problems.canonical.problem_key`.
    """
    if source.size is None:
        return ProblemSet(source.name, _draw(source, n, exclude).values())
    allowed = [index for index, key in enumerate(keys_of(source)) if key not in exclude]
    shuffle(allowed, seed, "sample")
    return _subset(source, source.name, sorted(allowed[:n]))


def contaminated_keys(
    training: ProblemSource, evaluation: Sequence[Problem], n: int = WORDS_IN_A_ROW
) -> frozenset[str]:
    """Canonical forms of training problems that share an id or ``n`` words in a row with
    evaluation."""
    if training.size is None:
        raise UserError(
            f"{training.name} is generated, and its problems share their wording by design; "
            "leave out --problems.decontaminate"
        )
    problems = [training[place] for place in range(training.size)]
    pairs = same_id(problems, evaluation) + shared_words(problems, evaluation, n)
    keys = keys_of(training)
    return frozenset(keys[place] for place, _ in pairs)


def _draw(
    source: ProblemSource, n: int, exclude: frozenset[str] = frozenset()
) -> dict[str, Problem]:
    """The first ``n`` different problems of a generator, by canonical form."""
    drawn: dict[str, Problem] = {}
    if n > _MOST_DRAWN:
        raise UserError(
            f"{source.name} would have to draw {n} problems; at most {_MOST_DRAWN} can be held out "
            "of a generator or be a limit to it: lower --problems.held-out or --problems.limit"
        )
    draws = n * _DRAWS_PER_PROBLEM + _EXTRA_DRAWS
    for index in range(draws):
        problem = source[index]
        key = problem_key(problem)
        if key not in exclude:
            drawn.setdefault(key, problem)
        if len(drawn) == n:
            return drawn
    raise UserError(
        f"{source.name} gave only {len(drawn)} different problems in {draws} draws, not {n}; "
        "ask for fewer or widen its options"
    )


def _choose(source: ProblemSource, n: int, seed: int) -> dict[str, Problem]:
    """A seeded choice of ``n`` different problems of a finite set, in its own order."""
    first_of: dict[str, int] = {}
    for index, key in enumerate(keys_of(source)):
        first_of.setdefault(key, index)
    indices = list(first_of.values())
    if n < len(indices):
        shuffle(indices, seed, "held out")
    wanted = set(indices[:n])
    return {key: source[index] for key, index in first_of.items() if index in wanted}


def _subset(source: ProblemSource, name: str, indices: Sequence[int]) -> ProblemSet:
    notes = source.notes if isinstance(source, ProblemSet) else ()
    return ProblemSet(name, (source[index] for index in indices), notes)
