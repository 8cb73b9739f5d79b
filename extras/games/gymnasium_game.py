"""``gymnasium:ID``: a single-player environment with discrete actions or text.

Gymnasium has no illegal actions. Here an answer that names no action ends the episode, with -1
added to the rewards so far.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from coterie.datatypes import UserError, suggest
from coterie.envs.adapt import action_kind
from coterie.envs.registry import EnvSpec
from coterie.extras.games.game import ILLEGAL_REWARD, Game, checked, game_spec, read_move
from coterie.extras.games.options import check_mode, creator, read_parameters

_PLAYER = "player"


def spec(name: str, identity: str, options: Mapping[str, str]) -> EnvSpec:
    """The spec of ``gymnasium:IDENTITY``."""
    return game_spec(name, lambda settings: GymnasiumGame(name, identity, options))


class GymnasiumGame(Game):
    """A Gymnasium environment, one episode at a time."""

    players = (_PLAYER,)

    def __init__(self, name: str, identity: str, options: Mapping[str, str]) -> None:
        """
        Args:
            name: prefix of error messages.
            identity: a registered id, ``FrozenLake-v1``, or ``module:ID`` that registers itself.
            options: keywords of the environment, as the user wrote them.

        Raises:
            UserError: the environment does not exist, does not take a keyword, or has actions
                that text cannot name.
        """
        if ":" not in identity and identity not in gymnasium.registry:
            near = suggest(identity, gymnasium.registry)
            raise UserError(f"env {name!r}: Gymnasium has no such environment; {near}.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry: Any = gymnasium.spec(identity).entry_point
            keywords = read_parameters(options, _time_limit, creator(entry), title=f"env {name!r}")
            self.env: Any = gymnasium.make(identity, disable_env_checker=True, **keywords)
        check_mode(self.env, keywords, title=f"env {name!r}")
        self._space = self.env.action_space
        if not isinstance(self._space, spaces.Discrete) and action_kind(self._space) != "text":
            raise UserError(
                f"env {name!r} acts in {self._space}; in text an environment needs discrete "
                "actions or text."
            )
        self._seen: Any = None
        self._info: Mapping[str, Any] = {}
        self._paid, self._over = 0.0, True

    def reset(self, seed: int) -> None:
        self._seen, self._info = checked(self.env, "reset", self.env.reset(seed=seed))
        self._paid, self._over = 0.0, False

    def asks(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        return {} if self._over else {_PLAYER: (observation_text(self._seen), self._moves())}

    def _moves(self) -> Sequence[str]:
        if not isinstance(self._space, spaces.Discrete):
            return ()
        first, mask = int(self._space.start), self._info.get("action_mask")
        moves = [str(first + k) for k in range(self._space.n) if mask is None or mask[k]]
        if not moves:
            raise UserError(
                f"{type(self.env.unwrapped).__name__}: action_mask leaves no move; allow one, or "
                "end the episode."
            )
        return moves

    def play(self, answer: str) -> bool:
        move: Any = answer
        if isinstance(self._space, spaces.Discrete):
            move = read_move(answer, self._moves())
            if move is None:
                self._paid, self._over = self._paid + ILLEGAL_REWARD, True
                return False
            move = int(move)
        step = checked(self.env, "step", self.env.step(move))
        self._seen, reward, ended, cut, self._info = step
        self._paid, self._over = self._paid + float(reward), bool(ended or cut)
        return True

    def rewards(self) -> Mapping[str, float]:
        return {_PLAYER: self._paid}


def _time_limit(max_episode_steps: int | None = None) -> None:
    """Signature of the keywords of ``gymnasium.make`` itself that users may set."""


def observation_text(seen: Any) -> str:
    """Format an observation: text as it is, a dict's parts by name, numbers in a row."""
    if isinstance(seen, str):
        return seen
    if isinstance(seen, Mapping):
        return "\n".join(f"{name}: {observation_text(part)}" for name, part in seen.items())
    if isinstance(seen, tuple):
        return " ".join(map(observation_text, seen))
    values = np.asarray(seen)
    form = ".3g" if values.dtype.kind == "f" else ""
    rows = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values.reshape(1, -1)
    return "\n".join(" ".join(f"{value:{form}}" for value in row) for row in rows)
