"""Which peers' summaries a path reads."""

from collections.abc import Mapping

import numpy as np

from coterie.datatypes import derive_seed
from coterie.envs.leap.settings import Router

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


def choose(own: str, others: Mapping[str, str], peers: int, router: Router, seed: int) -> list[str]:
    """The paths whose summaries the writer of ``own`` reads, at most ``peers`` of them.

    Args:
        own: its own summary.
        others: path -> summary. Ties go by the order of the paths.
        peers: how many at most.
        router: see :class:`coterie.envs.leap.settings.LeapSettings`.
        seed: of ``random``.

    >>> choose("abcd", {"b": "abcx", "c": "wxyz", "d": "abyz"}, 2, "hybrid", 0)
    ['b', 'c']
    """
    if router == "random":
        return sorted(others, key=lambda path: derive_seed("leap", seed, path))[:peers]
    near = sorted(others, key=lambda path: -similarity(own, others[path]))
    far = sorted(others, key=lambda path: similarity(own, others[path]))
    if router == "clustered":
        return near[:peers]
    if router == "dispersed":
        return far[:peers]
    first = near[: (peers + 1) // 2]
    return [*first, *(path for path in far if path not in first)][:peers]
