"""Which engine is asked: the one that has read the prompt's beginning, as long as it is not busier
than its share (consistent hashing with bounded loads, arXiv:1608.01350)."""

import hashlib
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy.typing as npt

PREFIX = 256
"""Tokens of a prompt that decide which engine is asked: requests that begin alike share its work
on them."""
SPARE = 1.25
"""How many times its share of all requests an engine may hold before another one is asked."""
FEW = 8
"""Requests that an engine may hold in any case: they take hardly longer than one."""


def choose(prompt: npt.NDArray[Any], engines: Sequence[str], load: Mapping[str, int]) -> str:
    """The engine for a prompt.

    Rendezvous hashing orders the engines: the same beginning always has the same order, whichever
    other engines there are. The first of them that is below ``SPARE`` times its share, or has only
    a ``FEW``, answers.

    Args:
        prompt: its tokens.
        engines: their names, at least one.
        load: requests that each has to answer already; none where it is not named.
    """
    total = 1 + sum(load.get(name, 0) for name in engines)
    most = max(FEW, ceil(SPARE * total / len(engines)))
    free = [name for name in engines if load.get(name, 0) < most]
    beginning = hashlib.blake2b(prompt[:PREFIX].tobytes(), digest_size=16).digest()
    return max(free, key=lambda name: _weight(beginning, name))


def _weight(beginning: bytes, name: str) -> bytes:
    # Not a CRC: it is linear, and gives one of three engines half of all prompts.
    return hashlib.blake2b(name.encode(), digest_size=8, key=beginning).digest()
