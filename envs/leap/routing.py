"""Which peers' summaries a path reads."""

# P paths

import numpy as np
import numpy.typing as npt

from envs.leap.settings import Router
from vocabulary import derive_seed

LONGEST = 2000
"""Characters of a summary that are compared."""


def levenshtein(one: str, other: str) -> int:
    """Edits (insert, delete, replace a character) from ``one`` to ``other``."""
    left = np.frombuffer(one.encode("utf-32-le", "replace"), np.uint32)
    right = np.frombuffer(other.encode("utf-32-le", "replace"), np.uint32)
    places = np.arange(len(right) + 1)
    row = places.copy()
    for number, character in enumerate(left, start=1):
        best = np.minimum(row[1:] + 1, row[:-1] + (right != character))
        row = np.concatenate(([number], best))
        # An insertion costs 1 a place: the running minimum of what is left after taking that off.
        row = np.minimum.accumulate(row - places) + places
    return int(row[-1])


def similarity(one: str, other: str) -> float:
    """1 less the edits over the longer length, in [0, 1]."""
    one, other = one[:LONGEST], other[:LONGEST]
    longest = max(len(one), len(other))
    return 1.0 if not longest else 1 - levenshtein(one, other) / longest


def similarities(texts: list[str]) -> npt.NDArray[np.float64]:
    """(P, P), symmetric, 1 on the diagonal."""
    count = len(texts)
    found_PP = np.ones((count, count))
    for i in range(count):
        for j in range(i):
            found_PP[i, j] = found_PP[j, i] = similarity(texts[i], texts[j])
    return found_PP


def choose(
    similarity_PP: npt.NDArray[np.float64], path: int, peers: int, router: Router, seed: int
) -> list[int]:
    """The paths whose summaries ``path`` reads, at most ``peers`` of them, never its own.

    Ties go by the order of the paths.
    """
    others = [other for other in range(len(similarity_PP)) if other != path]
    if router == "random":
        others.sort(key=lambda other: derive_seed("leap", seed, path, other))
        return others[:peers]
    near = sorted(others, key=lambda other: -similarity_PP[path, other])
    far = sorted(others, key=lambda other: similarity_PP[path, other])
    if router == "clustered":
        return near[:peers]
    if router == "dispersed":
        return far[:peers]
    first = near[: (peers + 1) // 2]
    return [*first, *(other for other in far if other not in first)][:peers]
