"""Answers for the check: well-formed samples and malformed input."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from coterie.datatypes import derive_seed, listed_moves
from coterie.envs.adapt import action_kind
from coterie.envs.spaces import TokenSpace

MISSING = object()
"""Marks an agent without an entry in ``actions``."""

ActionChooser = Callable[[str, int], Any]
"""(agent, step) -> its action, or :data:`MISSING`."""

_MEGABYTE = 1_000_000
_TEXTS: dict[str, Any] = {
    "empty text": "",
    "a megabyte of text": "9 + 9 = " * (_MEGABYTE // 8),
    "a megabyte of backslashes": "\\" * _MEGABYTE,
    "unclosed tags and braces": "<strategy><final_answer>\\boxed{{{" * 20_000,
    "broken JSON": '{"answer": [1, 2, {"text": "\\u00',
    "control characters and lone surrogates": "\x00\x1b[31m\r\n\ud800\u2028" * 50,
    "something that is no text": 17,
    "nothing at all": None,
}


def plain_answers(env: Any, which: int = 0) -> ActionChooser:
    """Return samples of the action spaces; ``which`` numbers independent ways to answer."""
    cache: dict[tuple[str, int], Any] = {}

    def answer(agent: str, step: int) -> Any:
        if (agent, step) not in cache:
            space = env.action_space(agent)
            space.seed(derive_seed("check_env", agent, step + 1000 * which) % 2**31)
            cache[agent, step] = space.sample()
        return cache[agent, step]

    return answer


_NUMBERS = re.compile(r"^Answer with (\d+) numbers?(, each|:) (.+)", re.MULTILINE)
_VALUES = re.compile(r"(-?\d+) to (-?\d+)|-?\d+(?: or -?\d+)*")


def legal_answer(text: str, *seed: Any) -> str | None:
    """Draw one of the legal answers that the text of a game names; None: it names none.

    Games name them as ``Moves: 0 2 5`` or ``Answer with 2 numbers: 0 to 2, 1 or 4``.
    """

    def drawn(values: Any, *more: int) -> str:
        return str(values[derive_seed("check_env", *seed, *more) % len(values)])

    if moves := listed_moves(text):
        return drawn(moves)
    if not (asked := _NUMBERS.findall(text)):
        return None
    count, each, named = asked[-1]
    entries = list(_VALUES.finditer(named)) * (int(count) if "each" in each else 1)
    values = (
        range(int(entry[1]), int(entry[2]) + 1) if entry[1] else entry[0].split(" or ")
        for entry in entries
    )
    return " ".join(drawn(legal, place) for place, legal in enumerate(values))


def hostile_answers(env: Any) -> dict[str, ActionChooser]:
    """Return name -> malformed answers, which an environment must tolerate."""
    plain = plain_answers(env)
    hostile: dict[str, ActionChooser] = {
        "no actions": lambda agent, step: MISSING,
        "actions of every other agent only": lambda agent, step: (
            MISSING if (env.possible_agents.index(agent) + step) % 2 else plain(agent, step)
        ),
    }
    space = env.action_space(env.possible_agents[0])
    kind = action_kind(space)
    if kind == "text":
        for name, text in _TEXTS.items():
            hostile[name] = lambda agent, step, text=text: text
    elif kind == "tokens":
        for name, make in _TOKENS.items():
            hostile[name] = lambda agent, step, make=make: make(env.action_space(agent))
    elif isinstance(space, spaces.MultiDiscrete):
        hostile["lowest values"] = lambda agent, step: np.zeros_like(plain(agent, step))
        hostile["highest values"] = lambda agent, step: env.action_space(agent).nvec - 1
    return hostile


def _ids(space: Space[Any], length: int) -> Any:
    vocab_size = space.vocab_size if isinstance(space, TokenSpace) else 2
    return np.random.default_rng(0).integers(vocab_size, size=length, dtype=np.int64)


_TOKENS: dict[str, Callable[[Space[Any]], Any]] = {
    "empty arrays": lambda space: np.zeros(0, dtype=np.int64),
    "a megabyte of random ids": lambda space: _ids(space, _MEGABYTE // 8),
    "a megabyte of the same id": lambda space: np.zeros(_MEGABYTE // 8, dtype=np.int64),
    "ids outside the vocabulary": lambda space: np.array([-1, 2**40, 3], dtype=np.int64),
    "arrays of fractions": lambda space: np.array([0.5, np.nan]),
    "a string": lambda space: "text",
    "nothing at all": lambda space: None,
}
