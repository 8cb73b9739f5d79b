"""``pettingzoo:classic/NAME``: PettingZoo's board and card games, with positions in digits.

The package decides what an illegal move costs: the classic games end with -1 for its player and 0
for all others. If every move of the space is legal (``rps_v2``), an answer that is not a move
costs the same.
"""

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pettingzoo
from gymnasium import spaces
from pettingzoo.env_registry.registration import aec_registry
from pettingzoo.utils.env_logger import EnvLogger

from coterie.datatypes import UserError, suggest
from coterie.envs.registry import EnvSpec
from coterie.extras.games.aec_game import AECGame, mask_of
from coterie.extras.games.game import game_spec, read_move
from coterie.extras.games.options import check_mode, creator, read_parameters

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
# Illegal moves are counted in the log; they print no line on the terminal.
EnvLogger.suppress_output()


def spec(name: str, identity: str, options: Mapping[str, str]) -> EnvSpec:
    """The spec of ``pettingzoo:IDENTITY``."""
    return game_spec(name, lambda settings: PettingZooGame(name, identity, options))


class PettingZooGame(AECGame):
    """An AEC game with a discrete action space for each player."""

    def __init__(self, name: str, identity: str, options: Mapping[str, str]) -> None:
        """
        Args:
            name: prefix of error messages.
            identity: ``classic/tictactoe_v3`` or ``classic/tictactoe-v3``.
            options: keywords of the game.

        Raises:
            UserError: the game does not exist, or its actions are not discrete.
        """
        environment_id = re.sub(r"_v(\d+)$", r"-v\1", identity)
        if environment_id not in aec_registry:
            near = suggest(
                environment_id, (key for key in aec_registry if key.startswith("classic/"))
            )
            raise UserError(f"env {name!r}: PettingZoo has no such game; {near}.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry: Any = aec_registry[environment_id].entry_point
            keywords = read_parameters(options, creator(entry), title=f"env {name!r}")
            super().__init__(pettingzoo.make("aec", environment_id, **keywords))
        check_mode(self.env, keywords, title=f"env {name!r}")
        for player in self.players:
            if not isinstance(self.env.action_space(player), spaces.Discrete):
                raise UserError(
                    f"env {name!r}: {player} acts in {self.env.action_space(player)}; a game in "
                    "text needs discrete actions."
                )
        self.contest = not environment_id.startswith("classic/hanabi")
        self._text_of = _VIEWS.get(
            environment_id.removeprefix("classic/").split("-")[0], numbers_text
        )

    def asks(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        player = self.turn()
        if player is None:
            return {}
        return {player: (self._text_of(self.env, self.env.observe(player)), self._moves())}

    def _moves(self) -> Sequence[str]:
        space = self.env.action_space(self.env.agent_selection)
        mask = mask_of(*self.position())
        return [str(number) for number in range(space.n) if mask is None or mask[number]]

    def play(self, answer: str) -> bool:
        move, mask = read_move(answer, self._moves()), mask_of(*self.position())
        if move is None and (mask is None or all(mask)):
            self.forfeit()
        else:
            # Any illegal move can represent an answer that cannot be parsed.
            self.act(int(np.flatnonzero(~np.asarray(mask, bool))[0] if move is None else move))
        return move is not None


def board_text(env: Any, seen: Any) -> str:
    """Format a two-colour board, one line per row: 0 free, 1 the reader's, 2 the opponent's.

    Fields count from 0 in reading order.
    """
    planes = np.asarray(seen["observation"])
    board = planes[..., 0] + 2 * planes[..., 1]
    return "\n".join(" ".join(str(int(field)) for field in row) for row in board)


def hanabi_text(env: Any, seen: Any) -> str:
    """OpenSpiel's own text of a player's observation and of each move."""
    table = env.unwrapped.hanabi_env
    state = table.game_state
    player = table.agent_name_id_mapping[env.agent_selection]
    named = [f"{move} {state.action_to_string(player, move)}" for move in state.legal_actions()]
    return "\n".join([state.observation_string(player).strip(), *named])


def numbers_text(env: Any, seen: Any) -> str:
    """Format the indices of nonzero values, with the values that are not 1."""
    values = np.asarray(seen["observation"] if isinstance(seen, Mapping) else seen).reshape(-1)
    if len(values) == 1:
        return f"Seen: {values[0]:g}"
    entries = (
        f"{index}" if (v := values[index]) == 1 else f"{index}={v:g}"
        for index in np.flatnonzero(values)
    )
    return f"Seen: {' '.join(entries)}"


_VIEWS: dict[str, Callable[[Any, Any], str]] = {
    "tictactoe": board_text,
    "connect_four": board_text,
    "hanabi": hanabi_text,
}
