"""Splits of problem sets, and overlap of training and evaluation problems.

Overlap means the same id, the same canonical form, or 13 common consecutive words
(arXiv:2005.14165, appendix C).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from coterie.datatypes import Problem, UserError
from coterie.problems.canonical import canonical, problem_key
from coterie.problems.source import ProblemSet, ProblemSource, keys_of, shuffle

WORDS_IN_A_ROW = 13
_WORD = re.compile(r"\w+")

# Columns with ids. Short ids can coincide by chance in two sets.
_ID_COLUMNS = ("id", "ID", "unique_id", "Record ID", "task_id")
_SHORTEST_ID = 8

Pair = tuple[int, int]
"""(index of a training problem, index of the evaluation problem that it overlaps with)"""


def same_id(training: Sequence[Problem], evaluation: Sequence[Problem]) -> list[Pair]:
    """Return pairs with the same id, of eight characters or more, in the same column."""
    return _join(map(_ids, training), map(_ids, evaluation))


def same_form(training: Sequence[Problem], evaluation: Sequence[Problem]) -> list[Pair]:
    """Return pairs with the same canonical form."""
    return _join(
        ((problem_key(problem),) for problem in training),
        ((problem_key(problem),) for problem in evaluation),
    )


def shared_words(
    training: Sequence[Problem], evaluation: Sequence[Problem], n: int = WORDS_IN_A_ROW
) -> list[Pair]:
    """Return pairs with ``n`` common consecutive words; shorter questions must be equal."""
    return _join(
        (_grams(problem.question, n) for problem in training),
        (_grams(problem.question, n) for problem in evaluation),
    )


def _grams(question: str, n: int) -> Iterator[tuple[str, ...]]:
    """The n-grams of a question, or the whole question if it is shorter."""
    words = _WORD.findall(canonical(question))
    count = max(len(words) - n + 1, 1)
    return (tuple(words[start : start + n]) for start in range(count))


def _ids(problem: Problem) -> Iterator[tuple[str, str]]:
    for column in _ID_COLUMNS:
        value = problem.meta.get(column)
        if isinstance(value, str) and len(value) >= _SHORTEST_ID:
            yield column, value


def _join(training: Iterable[Iterable], evaluation: Iterable[Iterable]) -> list[Pair]:
    """Pairs with a common key; each training problem once, with its first match."""
    first_with: dict[object, int] = {}
    for i, keys in enumerate(evaluation):
        for key in keys:
            first_with.setdefault(key, i)
    pairs: list[Pair] = []
    for i, keys in enumerate(training):
        match = next((first_with[key] for key in keys if key in first_with), None)
        if match is not None:
            pairs.append((i, match))
    return pairs


HELD_OUT = 512
"""Evaluation problems of a generator, or of a set that also trains."""

_DRAWS_PER_PROBLEM = 20
_EXTRA_DRAWS = 1000
# Takes about ten seconds.
_MOST_DRAWN = 100_000


def hold_out(
    evaluation: ProblemSource,
    training: ProblemSource | None,
    n: int | None = None,
    seed: int = 0,
    way_out: str = "lower --problems.held-out or name another source with --problems.eval",
) -> tuple[tuple[Problem, ...], frozenset[str]]:
    """Choose evaluation problems; return them and the canonical forms that training must exclude.

    A published test set stays whole; common problems are removed from training.

    Args:
        evaluation: the source. A generator gives its first problems, a finite set a seeded choice,
            or all problems if it has fewer.
        training: the training source, if it may be the same set.
        n: number of different problems; None: all of a finite set other than the training set, or
            :data:`HELD_OUT`.
        seed: seed of the choice.
        way_out: what to do where too many are asked for, for the message.

    Raises:
        UserError: a generator has fewer than ``n`` different problems, or a set for both purposes
            would leave none for training.
    """
    if evaluation.size is None:
        chosen = _draw(evaluation, n or HELD_OUT)
        return tuple(chosen.values()), frozenset(chosen)
    shared = training is not None and training.fingerprint == evaluation.fingerprint
    n = n or (HELD_OUT if shared else evaluation.size)
    chosen = _choose(evaluation, n, seed)
    if shared and n >= len(set(keys_of(evaluation))):
        raise UserError(
            f"{evaluation.name} has {len(chosen)} different problems, so holding out {n} for "
            f"evaluation leaves none to train on; {way_out}"
        )
    return tuple(chosen.values()), frozenset(chosen)


def part(
    source: ProblemSet,
    which: Literal["train", "eval"],
    *,
    train_percent: int = 80,
    order: Literal["shuffled", "given"] = "shuffled",
) -> ProblemSet:
    """Return the training or evaluation part of a set without splits.

    The first ``floor(size * train_percent / 100)`` problems are for training: 770 of 963 at 80 %.

    Args:
        source: the whole set.
        which: the part.
        train_percent: percentage for training.
        order: shuffled by a fixed seed, or as given, which is chronological for contests.

    Raises:
        UserError: the part is empty.
    """
    indices = list(range(source.size))
    if order == "shuffled":
        shuffle(indices, 0, "part")
    cut = source.size * train_percent // 100
    wanted = indices[:cut] if which == "train" else indices[cut:]
    if not wanted:
        raise UserError(
            f"{source.name}: of its {source.size} problems {train_percent} % train, which leaves "
            f"the {which} part empty; name a larger set"
        )
    return _subset(source, f"{source.name}#{which}", sorted(wanted))


def sample(
    source: ProblemSource, n: int, seed: int = 0, exclude: frozenset[str] = frozenset()
) -> ProblemSource:
    """Return at most ``n`` problems that are not excluded.

    Args:
        source: the source. A set is sampled; a generator gives its first problems.
        n: number of problems.
        seed: seed of the sample.
        exclude: canonical forms to leave out (:func:`coterie.problems.canonical.problem_key`).
    """
    if source.size is None:
        return ProblemSet(source.name, _draw(source, n, exclude).values())
    allowed = [index for index, key in enumerate(keys_of(source)) if key not in exclude]
    shuffle(allowed, seed, "sample")
    return _subset(source, source.name, sorted(allowed[:n]))


def contaminated_keys(training: ProblemSource, evaluation: Sequence[Problem]) -> frozenset[str]:
    """Return canonical forms of training problems that share an id, or ``WORDS_IN_A_ROW`` words in
    a row, with evaluation problems."""
    if training.size is None:
        raise UserError(
            f"{training.name} is generated, and its problems share their wording by design; "
            "leave out --problems.decontaminate"
        )
    problems = [training[i] for i in range(training.size)]
    pairs = same_id(problems, evaluation) + shared_words(problems, evaluation, WORDS_IN_A_ROW)
    keys = keys_of(training)
    return frozenset(keys[i] for i, _ in pairs)


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
