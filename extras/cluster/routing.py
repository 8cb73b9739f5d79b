"""Route each request to an engine that has its prompt's prefix cached, unless that engine is
overloaded (consistent hashing with bounded loads, arXiv:1608.01350)."""

import hashlib
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy.typing as npt

PREFIX = 256
"""Prompt tokens that decide the engine: requests with the same prefix share its cached work."""
SPARE = 1.25
"""An engine takes no more requests above this multiple of its fair share."""
FEW = 8
"""An engine always takes this many requests: they take hardly longer than a single request."""


def choose(prompt: npt.NDArray[Any], engines: Sequence[str], load: Mapping[str, int]) -> str:
    """Choose the engine for a prompt.

    Rendezvous hashing ranks the engines: the same prefix always gives the same ranking, whatever
    other engines exist. The request goes to the first engine with fewer requests than ``SPARE``
    times its fair share, or than ``FEW``.

    Args:
        prompt: token ids, shape (T,).
        engines: engine names, at least one.
        load: engine name -> requests in flight; 0 if the name is missing.
    """
    total = 1 + sum(load.get(name, 0) for name in engines)
    most = max(FEW, ceil(SPARE * total / len(engines)))
    free = [name for name in engines if load.get(name, 0) < most]
    beginning = hashlib.blake2b(prompt[:PREFIX].tobytes(), digest_size=16).digest()
    return max(free, key=lambda name: _weight(beginning, name))


def _weight(beginning: bytes, name: str) -> bytes:
    # Not a CRC: CRCs are linear and would send half of all prompts to one of three engines.
    return hashlib.blake2b(name.encode(), digest_size=8, key=beginning).digest()
