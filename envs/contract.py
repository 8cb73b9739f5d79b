"""What the contract's own names must hold, in infos and in metadata (docs/architecture.md)."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Rule = tuple[Callable[[Any], bool], str]
"""Whether a value is what it must be, and what that is."""


def why_not_kept(
    agent: str, info: Mapping[str, Any], *, asked: bool = True, tokens: bool = False
) -> str:
    """What of ``agent``'s info breaks the contract, and the way out; empty if it keeps it.

    Args:
        agent: whose info it is.
        info: any mapping; what the contract has no name for is not looked at.
        asked: whether the agent is to act now: limits matter to nobody else.
        tokens: whether the agent reads ids, in which ``learned_after`` then stands too.
    """
    for key, value in info.items():
        rule = _RULES.get(key) or (_LIMITS.get(key) if asked else None)
        if key == "learned_after" and tokens:
            rule = (_ids, "a list of token ids")
        if rule is not None and not rule[0](value):
            return f"{key} of {agent} is {value!r:.100}: it must be {rule[1]}"
    return ""


def why_no_metadata(metadata: Any) -> str:
    """What of an environment's metadata breaks the contract, and the way out; empty if nothing."""
    if not isinstance(metadata, Mapping):
        return f"metadata is {metadata!r:.100}: it must be a dictionary"
    for key, (holds, needed) in _METADATA.items():
        if key in metadata and not holds(metadata[key]):
            return f"metadata[{key!r}] is {metadata[key]!r:.100}: it must be {needed}"
    return ""


def bare(value: Any) -> Any:
    """``value`` with Python's numbers in place of NumPy's, wherever they stand in it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    return [bare(item) for item in value] if isinstance(value, list | tuple) else value


def is_named(key: Any) -> bool:
    """Whether the contract says what stands under ``key`` in an info."""
    return key in _RULES or key in _LIMITS


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**40


def _finite(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, np.generic)
    return plain and math.isfinite(value)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_text, value))


def _ids(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "iu"
    return isinstance(value, list | tuple) and all(isinstance(part, int) for part in value)


def _by_name(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def all_hold(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        # Loops, for generators cost more than what they ask, and every step of training asks.
        for name, part in value.items():
            if not isinstance(name, str) or not holds(part):
                return False
        return True

    return all_hold


_LIMITS: dict[str, Rule] = {
    "max_new_tokens": (_count, "an int of at least 1"),
    "stop": (_texts, "a list of non-empty strings"),
    "piece": (
        lambda value: isinstance(value, str) and value in ("message", "continuation", "fresh"),
        "'message', 'continuation' or 'fresh'",
    ),
}
_RULES: dict[str, Rule] = {
    "reward_terms": (_by_name(_finite), "a dictionary of finite numbers by name"),
    "groups": (_by_name(_text), "a dictionary of non-empty strings by group key"),
    "loss_weight": (
        lambda value: _finite(value) and value >= 0,
        "a finite number of at least 0",
    ),
    "episode": (_by_name(lambda part: True), "a dictionary by name"),
    "learned_after": (lambda value: isinstance(value, str), "text"),
    "texts": (
        lambda value: isinstance(value, list | tuple) and all(isinstance(v, str) for v in value),
        "a list of strings",
    ),
}
_METADATA: dict[str, Rule] = {
    "group_keys": (_texts, "a tuple of non-empty strings"),
    "default_group": (_text, "one of metadata['group_keys']"),
    "replicas": (_count, "an int of at least 1"),
}
