"""The rules of the environment contract (docs/architecture.md).

Each ``why_...`` function returns a sentence that says what is wrong and how to fix it, or "". The
check, the guard and conversations all use these functions.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from coterie.datatypes import role_of

Rule = tuple[Callable[[Any], bool], str]
"""(whether a value is valid, a description of valid values)"""

CONTEXTS = frozenset({"learned_after", "reread_after", "contrast_after"})
"""Infos with another context of the agent's row, as text; a token view turns it into ids."""

_RESULTS = {
    "reset": "observations, infos",
    "step": "observations, rewards, terminations, truncations, infos",
}


def roles_of(agents: Iterable[str]) -> tuple[str, ...]:
    """Return the roles of ``agents`` without repetition, in order of appearance."""
    return tuple(dict.fromkeys(role_of(agent) for agent in agents))


def why_not_roles(roles: Sequence[str], agents: Iterable[str]) -> str:
    """Check that ``agents`` play the ``roles``, each of them and no others."""
    here = roles_of(agents)
    if {*here} == {*roles}:
        return ""
    return f"its agents have the roles {', '.join(here)}, not {', '.join(roles)}"


def why_no_result(method: str, result: Any) -> str:
    """Check the form of a result of ``reset`` or ``step``."""
    names = _RESULTS[method]
    expected = len(names.split(", "))
    whole = isinstance(result, tuple) and len(result) == expected
    if whole and all(isinstance(part, Mapping) for part in result):
        return ""
    return f"{method}() must give {expected} dictionaries by agent: {names}"


def why_no_agents(
    method: str, agents: Any, possible: Collection[str], observations: Mapping[str, Any]
) -> str:
    """Check ``agents`` after a call, and the agents with observations.

    Args:
        method: the method that was called, ``reset`` or ``step``.
        agents: the environment's ``agents`` after the call.
        possible: its ``possible_agents``.
        observations: the call's observations by agent.
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


def why_not_left(agents: Collection[str], *ends: Any) -> str:
    """Check that whoever ended is in ``agents`` no more.

    Args:
        agents: the environment's ``agents`` after ``step``.
        ends: its terminations and truncations by agent.
    """
    for agent in agents:
        if any(isinstance(end, Mapping) and end.get(agent) for end in ends):
            return f"step() ends {agent}, who is still in agents: take out who has ended"
    return ""


def why_no_text(agent: str, observation: Any) -> str:
    """Check an observation of a text environment."""
    whole = isinstance(observation, Mapping) and "active" in observation
    if whole and isinstance(observation.get("text"), str):
        return ""
    return (
        f"{agent} observes {observation!r:.100}: it must be a dictionary of 'text', a string, and "
        "'active'"
    )


def why_no_reward(agent: str, reward: Any) -> str:
    """Check a reward."""
    try:
        finite = not isinstance(reward, str | bytes) and math.isfinite(float(reward))
    except Exception:
        # Arrays and tensors raise exceptions of their own.
        finite = False
    return "" if finite else f"the reward of {agent} is {reward!r:.100}, not a finite number"


def why_no_truth(what: str, value: Any) -> str:
    """Check a value that must be True or False."""
    try:
        bool(value)
    except Exception:
        return f"{what} is {value!r:.100}: it must be True or False"
    return ""


def why_not_paid(agent: str, terms: Mapping[str, float], paid: float) -> str:
    """Check that an agent's reward terms sum to its rewards."""
    total = math.fsum(terms.values())
    if math.isclose(total, paid, rel_tol=1e-6, abs_tol=1e-9):
        return ""
    return f"the reward_terms of {agent} sum to {total}, but it was paid {paid}"


def why_no_info(
    agent: str, info: Mapping[str, Any], *, active: bool = True, tokens: bool = False
) -> str:
    """Check an agent's info.

    Args:
        agent: the agent.
        info: any mapping; keys that the contract does not name are ignored.
        active: whether the agent is active; limits apply only then.
        tokens: whether the agent reads ids; ``CONTEXTS`` are then ids too.
    """
    for key, value in info.items():
        rule = _RULES.get(key) or (_LIMITS.get(key) if active else None)
        if key in CONTEXTS and tokens:
            rule = (_ids, "a list of token ids")
        if rule is not None and not rule[0](value):
            return f"{key} of {agent} is {value!r:.100}: it must be {rule[1]}"
    return ""


def why_no_metadata(metadata: Any) -> str:
    """Check an environment's metadata."""
    if not isinstance(metadata, Mapping):
        return f"metadata is {metadata!r:.100}: it must be a dictionary"
    for key, (holds, needed) in _METADATA.items():
        if key in metadata and not holds(metadata[key]):
            return f"metadata[{key!r}] is {metadata[key]!r:.100}: it must be {needed}"
    return ""


def python_info(
    agent: str, info: Mapping[str, Any], *, active: bool = True, tokens: bool = False
) -> tuple[dict[str, Any], str]:
    """Convert NumPy numbers of an info to Python's; return the info and the result of
    :func:`why_no_info`, which takes the same arguments."""
    flags = {"active": active, "tokens": tokens}
    if why_no_info(agent, info, **flags):
        named = _RULES.keys() | _LIMITS.keys()
        info = {key: _python_of(item) if key in named else item for key, item in info.items()}
        return info, why_no_info(agent, info, **flags)
    return dict(info), ""


def why_not_grouped(agent: str, groups: Mapping[str, Any], keys: Any) -> str:
    """Check that an agent's groups are those of the metadata."""
    if set(groups) == set(keys):
        return ""
    return (
        f"the groups of {agent} are {sorted(groups)}: they must be those of "
        f"metadata['group_keys'], {tuple(keys)}"
    )


def _python_of(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _python_of(item) for key, item in value.items()}
    return [_python_of(item) for item in value] if isinstance(value, list | tuple) else value


def as_unicode(value: Any) -> Any:
    """Replace lone surrogates in plain data by question marks, so that a file can hold it. Models
    can write them in JSON (``"\\ud800"``)."""
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
    """Check that ``value`` is plain data, which a log can hold."""
    try:
        # json refuses NaN, dates and dataclasses, which orjson would convert.
        json.dumps(value, allow_nan=False)
        # orjson refuses keys that are no strings, and integers beyond 64 bits.
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
        # A loop, because this runs in every training step and a generator is slower.
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
    "continues": (lambda value: isinstance(value, bool), "true or false"),
    "piece": (
        lambda value: (
            isinstance(value, str) and value in ("message", "continuation", "fresh", "tools")
        ),
        "'message', 'continuation', 'fresh' or 'tools'",
    ),
    **dict.fromkeys(
        ("offered_tools", "tool_results"),
        (
            lambda value: isinstance(value, list) and all(isinstance(v, dict) for v in value),
            "a list of dictionaries",
        ),
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
