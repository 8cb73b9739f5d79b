"""Spaces of text and of token sequences, and base classes for environments with fixed spaces.

Gymnasium's ``Text`` has a fixed alphabet and its ``Sequence`` consists of tuples. Language models
need any text, and arrays of ids.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from pettingzoo import ParallelEnv

_SAMPLED_LENGTH = 64
# Letters, digits, mathematics, markup and a few characters of two to four bytes.
_ALPHABET = "abcxyz 0123456789+-*/=<>(){}[]\\.,:\n\"'$^_éß−∑漢🙂"


class _LazilySeeded(Space[Any]):
    """A space that builds its generator on the first sample, because every reset seeds the spaces
    and few episodes sample from them."""

    _pending: int | None = None

    def seed(self, seed: int | None = None) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._pending = seed
        self._np_random = None  # pyright: ignore[reportAttributeAccessIssue]
        return seed or 0

    @property
    def np_random(self) -> np.random.Generator:
        if self._np_random is None:
            self._np_random = np.random.default_rng(self._pending)
        return self._np_random


class TextSpace(_LazilySeeded):
    """All strings of at most ``max_length`` characters."""

    def __init__(self, max_length: int = 1 << 24) -> None:
        self.max_length = max_length
        super().__init__()

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: None = None, probability: None = None) -> str:
        """Return a random string of up to 64 characters."""
        length = self.np_random.integers(min(_SAMPLED_LENGTH, self.max_length) + 1)
        letters = self.np_random.integers(len(_ALPHABET), size=length)
        return "".join(_ALPHABET[letter] for letter in letters)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextSpace) and other.max_length == self.max_length

    def __repr__(self) -> str:
        return f"TextSpace({self.max_length})"


def token_ids(action: Any, vocab_size: int) -> npt.NDArray[np.int64]:
    """Return the ids of an action in ``range(vocab_size)``, (T,); none if it is no array of
    integers."""
    try:
        ids = np.asarray(action)
    except (TypeError, ValueError):
        ids = np.zeros(0)
    if ids.dtype.kind not in "iu":
        return np.zeros(0, dtype=np.int64)
    ids = ids.reshape(-1).astype(np.int64)
    return ids[(ids >= 0) & (ids < vocab_size)]


class TokenSpace(_LazilySeeded):
    """One-dimensional ``int64`` arrays of at most ``max_length`` ids in ``range(vocab_size)``."""

    def __init__(self, vocab_size: int, max_length: int = 1 << 24) -> None:
        if vocab_size < 1:
            raise ValueError(f"a vocabulary of {vocab_size} tokens")
        self.vocab_size = vocab_size
        self.max_length = max_length
        super().__init__(dtype=np.int64)

    def contains(self, x: Any) -> bool:
        if not isinstance(x, np.ndarray) or x.dtype != np.int64 or x.ndim != 1:
            return False
        if len(x) > self.max_length:
            return False
        return not len(x) or bool(x.min() >= 0 and x.max() < self.vocab_size)

    def sample(self, mask: None = None, probability: None = None) -> npt.NDArray[np.int64]:
        """Return up to 64 uniformly random ids."""
        length = self.np_random.integers(min(_SAMPLED_LENGTH, self.max_length) + 1)
        return self.np_random.integers(self.vocab_size, size=length, dtype=np.int64)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TokenSpace)
            and other.vocab_size == self.vocab_size
            and other.max_length == self.max_length
        )

    def __repr__(self) -> str:
        return f"TokenSpace({self.vocab_size}, {self.max_length})"


Seen = tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]
"""(observations by agent, infos by agent)"""


class SpacedEnv(ParallelEnv[str, dict[str, Any], Any]):
    """Base of environments and views with fixed spaces.

    A subclass sets both mappings, agent -> space.
    """

    speaks_tokens = False
    """Whether the environment itself keeps the contract of the token view."""
    _observation_spaces: dict[str, Space[Any]]
    _action_spaces: dict[str, Space[Any]]

    def observation_space(self, agent: str) -> Space[Any]:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        return self._action_spaces[agent]

    def seed_actions(self, seed: int) -> None:
        """Seed every agent's action space with a different seed."""
        for i, space in enumerate(self._action_spaces.values()):
            space.seed(seed + i)


class View(SpacedEnv):
    """Base of views, which show another environment in other spaces."""

    def __init__(self, env: ParallelEnv[str, dict[str, Any], Any]) -> None:
        self.env = env
        self.metadata = env.metadata
        self.render_mode = getattr(env, "render_mode", None)
        self.possible_agents = list(env.possible_agents)
        self.agents: list[str] = []

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped

    def state(self) -> Any:
        return self.env.state()

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()
