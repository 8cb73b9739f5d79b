"""Several evaluation sets as one list of problems, each with the sets that it belongs to."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from coterie.datatypes import Problem


def merge(
    names: Sequence[str], sets: Sequence[Sequence[Problem]]
) -> tuple[tuple[Problem, ...], tuple[tuple[str, ...], ...]]:
    """Join evaluation sets; a problem that several sets have is there once.

    Equal ids name one problem that belongs to several sets, such as two views of one file. Where
    sets call different problems alike (``test:0`` of two files ``test.jsonl``), the name of the set
    stands before the ids.

    Args:
        names: of the sets, all different.
        sets: the problems of each, without equal ids in a set.

    Returns:
        The problems, and the names of the sets of each; these are empty for a single set.
    """
    ambiguous = set(_ambiguous(sets))
    problems: dict[str, Problem] = {}
    sets_of: dict[str, tuple[str, ...]] = {}
    for name, own in zip(names, sets, strict=True):
        for problem in own:
            id = f"{name}/{problem.id}" if _stem(problem) in ambiguous else problem.id
            problems.setdefault(id, replace(problem, id=id))
            sets_of[id] = (*sets_of.get(id, ()), name)
    return tuple(problems.values()), tuple(sets_of.values()) if len(sets) > 1 else ()


def _ambiguous(sets: Sequence[Sequence[Problem]]) -> Iterator[str]:
    """The stems of ids that name different problems."""
    named: dict[str, Problem] = {}
    for problem in (problem for own in sets for problem in own):
        if named.setdefault(problem.id, problem) != problem:
            yield _stem(problem)


def _stem(problem: Problem) -> str:
    """An id ``train:7`` without its number; empty if the id is the question itself."""
    return problem.id.rpartition(":")[0]
