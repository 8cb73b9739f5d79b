"""A PettingZoo game in which one player moves at a time (AEC), as a :class:`Game`."""

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.extras.games.game import ILLEGAL_REWARD, Game


class AECGame(Game):
    """Tracks turns, observations and rewards; a subclass writes prompts and parses answers."""

    def __init__(self, env: Any) -> None:
        """
        Args:
            env: a PettingZoo ``AECEnv``.
        """
        self.env = env
        self.players: Sequence[str] = list(env.possible_agents)
        self._paid: dict[str, float] = {}
        self._over = True

    def reset(self, seed: int) -> None:
        self.env.reset(seed=seed)
        self._paid, self._over = dict.fromkeys(self.players, 0.0), False

    def turn(self) -> str | None:
        """The player to move; None when the game is over."""
        # A player's reward is known when it would move again; its last sum, when it is dead.
        while not self._over and self.env.agents:
            player = self.env.agent_selection
            _, _, ended, cut, _ = self.env.last(observe=False)
            if not ended and not cut:
                return player
            self._collect()
            self.env.step(None)
        return None

    def position(self) -> tuple[Any, Mapping[str, Any]]:
        """(observation, info) of the player to move."""
        return self.env.observe(self.env.agent_selection), self.env.last(observe=False)[4]

    def act(self, action: Any) -> None:
        """Make a move, given as an action of the package."""
        self._collect()
        self.env.step(action)

    def forfeit(self) -> None:
        """End the game as a loss for the player to move."""
        self._paid[self.env.agent_selection] += ILLEGAL_REWARD
        self._over = True

    def rewards(self) -> Mapping[str, float]:
        # A truncated game still has rewards that no player has collected.
        owed = self.env._cumulative_rewards if self.env.agents else {}
        return {player: paid + float(owed.get(player, 0)) for player, paid in self._paid.items()}

    def _collect(self) -> None:
        """Add the current player's reward since its last move."""
        self._paid[self.env.agent_selection] += float(self.env.last(observe=False)[1])


def mask_of(seen: Any, info: Mapping[str, Any]) -> Any:
    """The mask of legal actions from the observation, else from the info; None without one."""
    seen = seen if isinstance(seen, Mapping) else {}
    return seen.get("action_mask", info.get("action_mask"))
