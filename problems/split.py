"""Which problems measure, and which train: the two never share a question."""

import random
from collections.abc import Sequence
from typing import Literal

from problems.canonical import problem_key
from problems.choices import shuffle
from problems.finite import ProblemSet
from problems.overlap import WORDS_IN_A_ROW, same_id, shared_words
from problems.source import ProblemSource
from problems.stream import keys_of
from vocabulary import Problem, UserError, derive_seed

HELD_OUT = 512
"""Evaluation problems of a generator, or of a set that also trains."""

_DRAWS_PER_PROBLEM = 20
_EXTRA_DRAWS = 1000
# Ten seconds or so.
_MOST_DRAWN = 100_000


def held_out(
    evaluation: ProblemSource,
    training: ProblemSource,
    n: int | None = None,
    seed: int = 0,
) -> tuple[tuple[Problem, ...], frozenset[str]]:
    """(evaluation problems, canonical forms that training must not show).

    ``n`` different problems: drawn in order from a generator, a seeded choice from a finite set,
    all of a finite set that has fewer. Without ``n``: the whole of a finite set that is not the
    training set, :data:`HELD_OUT` otherwise. A published test set stays whole: what it shares with
    training is taken from training. Raises :class:`UserError` when a generator cannot give ``n``
    different problems, or one finite set for both would leave nothing to train on.
    """
    if n is not None and n < 1:
        raise UserError(
            f"--problems.held-out is {n}; at least one problem is needed for evaluation"
        )
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

    The first ``floor(size * train_percent / 100)`` problems train, in a seeded order or in the
    given one (which is chronological for contests): 963 at 80 % are 770 and 193.
    """
    indices = list(range(source.size))
    if order == "shuffled":
        shuffle(indices, random.Random(derive_seed(seed, "part")))
    cut = source.size * train_percent // 100
    wanted = indices[:cut] if which == "train" else indices[cut:]
    if not wanted:
        raise UserError(f"{source.name}: its {which} part is empty at {train_percent} % training")
    return _subset(source, f"{source.name}#{which}", sorted(wanted))


def sample(
    source: ProblemSource, n: int, seed: int = 0, exclude: frozenset[str] = frozenset()
) -> ProblemSource:
    """At most ``n`` problems that are not excluded: a seeded choice, or a generator's first."""
    if n < 1:
        raise UserError(f"--problems.limit is {n}; train on at least one problem")
    if source.size is None:
        return ProblemSet(source.name, _draw(source, n, exclude).values())
    allowed = [index for index, key in enumerate(keys_of(source)) if key not in exclude]
    shuffle(allowed, random.Random(derive_seed(seed, "sample")))
    return _subset(source, source.name, sorted(allowed[:n]))


def contaminated(
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
        shuffle(indices, random.Random(derive_seed(seed, "held out")))
    wanted = set(indices[:n])
    return {key: source[index] for key, index in first_of.items() if index in wanted}


def _subset(source: ProblemSource, name: str, indices: Sequence[int]) -> ProblemSet:
    return ProblemSet(name, (source[index] for index in indices))
