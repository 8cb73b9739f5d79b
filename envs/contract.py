"""The rules of the environment contract (docs/architecture.md).

Each gives a sentence that says what is broken and the way out, or an empty one.

The check, the guard of other people's environments and conversations all ask here.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import orjson

Rule = tuple[Callable[[Any], bool], str]
"""Whether a value is what it must be, and what that is."""

CONTEXTS = frozenset({"learned_after", "reread_after"})
"""What an info calls other contexts of the agent's row: text, which a token view turns into ids."""

_RESULTS = {
    "reset": "observations, infos",
    "step": "observations, rewards, terminations, truncations, infos",
}


def role_of(agent: str) -> str:
    """What stands before the last underscore: ``alice`` for ``alice_0``; the whole name without
    one."""
    return agent.rpartition("_")[0] or agent


def roles_of(agents: Iterable[str]) -> tuple[str, ...]:
    """The roles of ``agents``, each once, in order of appearance."""
    return tuple(dict.fromkeys(role_of(agent) for agent in agents))


def why_no_result(method: str, result: Any) -> str:
    """What is wrong with the form of the result of ``reset`` or ``step``."""
    names = _RESULTS[method]
    expected = len(names.split(", "))
    whole = isinstance(result, tuple) and len(result) == expected
    if whole and all(isinstance(part, Mapping) for part in result):
        return ""
    return f"{method}() must give {expected} dictionaries by agent: {names}"


def why_no_agents(
    method: str, agents: Any, possible: Collection[str], observations: Mapping[str, Any]
) -> str:
    """What is wrong with ``agents`` after a call, and with the agents that observe something.

    Args:
        method: what was called, ``reset`` or ``step``.
        agents: the environment's ``agents`` by now.
        possible: its ``possible_agents``.
        observations: what the call gave, by agent.
    """
    if not isinstance(agents, Collection) or isinstance(agents, str):
        return f"after {method}() agents is {agents!r:.100}: it must be a list of names"
    for agent in (*agents, *observations):
        if agent not in possible:
            return f"after {method}() {agent!r} is there, who is not in possible_agents"
    for agent in agents:
        if agent not in observations:
            return f"{method}() gives {agent}, which is in agents, no observation"
    return ""


def why_no_text(agent: str, observation: Any) -> str:
    """What is wrong with what an agent of a text environment observes."""
    whole = isinstance(observation, Mapping) and "active" in observation
    if whole and isinstance(observation.get("text"), str):
        return ""
    return (
        f"{agent} observes {observation!r:.100}: it must be a dictionary of 'text', a string, and "
        "'active'"
    )


def why_no_reward(agent: str, reward: Any) -> str:
    """What is wrong with a reward."""
    try:
        finite = not isinstance(reward, str | bytes) and math.isfinite(float(reward))
    except Exception:
        # Arrays and tensors have a way to fail of their own.
        finite = False
    return "" if finite else f"the reward of {agent} is {reward!r:.100}, not a finite number"


def why_no_truth(what: str, value: Any) -> str:
    """What is wrong with a value that must be True or False."""
    try:
        bool(value)
    except Exception:
        return f"{what} is {value!r:.100}: it must be True or False"
    return ""


def why_not_paid(agent: str, terms: Mapping[str, float], paid: float) -> str:
    """Whether an agent's reward terms are not what it was paid."""
    total = math.fsum(terms.values())
    if math.isclose(total, paid, rel_tol=1e-6, abs_tol=1e-9):
        return ""
    return f"the reward_terms of {agent} sum to {total}, but it was paid {paid}"


def why_not_kept(
    agent: str, info: Mapping[str, Any], *, asked: bool = True, tokens: bool = False
) -> str:
    """What of ``agent``'s info breaks the contract, and the way out; empty if it keeps it.

    Args:
        agent: whose info it is.
        info: any mapping; what the contract has no name for is not looked at.
        asked: whether the agent is to act now: limits matter to nobody else.
        tokens: whether the agent reads ids, in which ``CONTEXTS`` then stand too.
    """
    for key, value in info.items():
        rule = _RULES.get(key) or (_LIMITS.get(key) if asked else None)
        if key in CONTEXTS and tokens:
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


def python_info(
    agent: str, info: Mapping[str, Any], *, asked: bool = True, tokens: bool = False
) -> tuple[dict[str, Any], str]:
    """An info with Python's numbers where the contract names a number, and what of it breaks the
    contract all the same; arguments as of :func:`why_not_kept`."""
    flags = {"asked": asked, "tokens": tokens}
    if why_not_kept(agent, info, **flags):
        # A number of NumPy's is what its author meant by it.
        named = _RULES.keys() | _LIMITS.keys()
        info = {key: _python_of(item) if key in named else item for key, item in info.items()}
        return info, why_not_kept(agent, info, **flags)
    return dict(info), ""


def why_not_grouped(agent: str, groups: Mapping[str, Any], keys: Any) -> str:
    """What is wrong with an agent's groups; empty where they are those of the metadata."""
    if set(groups) == set(keys):
        return ""
    return f"the groups of {agent} are {sorted(groups)}, metadata['group_keys'] is {tuple(keys)}"


def _python_of(value: Any) -> Any:
    """``value`` with Python's numbers in place of NumPy's, wherever they stand in it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _python_of(item) for key, item in value.items()}
    return [_python_of(item) for item in value] if isinstance(value, list | tuple) else value


def as_unicode(value: Any) -> Any:
    """Plain data whose strings a file can hold: a lone surrogate, which a model can spell in
    JSON (``"\\ud800"``), becomes a question mark."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {as_unicode(key): as_unicode(item) for key, item in value.items()}
        case list() | tuple():
            return [as_unicode(item) for item in value]
        case _:
            return value


def why_not_plain(value: Any) -> str:
    """What of ``value`` a log cannot hold as it is; empty if it is plain data."""
    try:
        # NaN, dates and dataclasses, which orjson writes as something else ...
        json.dumps(value, allow_nan=False)
        # ... and keys that are no strings and integers beyond 64 bits, which it refuses.
        orjson.dumps(as_unicode(value))
    except (TypeError, ValueError, RecursionError) as error:
        return str(error) or type(error).__name__
    return ""


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
    **dict.fromkeys(
        ("temperature", "top_p"),
        (lambda value: _finite(value) and value >= 0, "a finite number of at least 0"),
    ),
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
    "trained_turns": (
        lambda value: isinstance(value, list | tuple) and all(type(turn) is int for turn in value),
        "a list of whole numbers",
    ),
    "turn_rewards": (
        lambda value: isinstance(value, list | tuple) and all(map(_finite, value)),
        "a list of finite numbers",
    ),
    "void": (lambda value: isinstance(value, str), "text"),
    "episode": (_by_name(lambda part: True), "a dictionary by name"),
    **dict.fromkeys(CONTEXTS, (lambda value: isinstance(value, str), "text")),
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
