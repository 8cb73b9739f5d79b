"""A PettingZoo game in which one player moves at a time (AEC), as a :class:`Game`."""

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.extras.games.game import ILLEGAL_REWARD, Game


class AECGame(Game):
    """Who moves, what they see and what they are paid; a subclass tells it and reads answers."""

    def __init__(self, env: Any) -> None:
        """
        Args:
            env: an ``AECEnv``.
        """
        self.env = env
        self.players: Sequence[str] = list(env.possible_agents)
        self._paid: dict[str, float] = {}
        self._over = True

    def reset(self, seed: int) -> None:
        self.env.reset(seed=seed)
        self._paid, self._over = dict.fromkeys(self.players, 0.0), False

    def turn(self) -> str | None:
        # What a player was paid is told when it would move again, its last sum when it is dead.
        while not self._over and self.env.agents:
            player = self.env.agent_selection
            _, _, ended, cut, _ = self.env.last(observe=False)
            if not ended and not cut:
                return player
            self._collect()
            self.env.step(None)
        return None

    def position(self) -> tuple[Any, Mapping[str, Any]]:
        """The observation and the info of the player whose move it is."""
        return self.env.observe(self.env.agent_selection), self.env.last(observe=False)[4]

    def act(self, action: Any) -> None:
        """Make a move of the package's own."""
        self._collect()
        self.env.step(action)

    def forfeit(self) -> None:
        """End the game at the cost of the player whose move it is."""
        self._paid[self.env.agent_selection] += ILLEGAL_REWARD
        self._over = True

    def rewards(self) -> Mapping[str, float]:
        # A game that was cut off owes what nobody came to collect.
        owed = self.env._cumulative_rewards if self.env.agents else {}
        return {player: paid + float(owed.get(player, 0)) for player, paid in self._paid.items()}

    def _collect(self) -> None:
        """Book what the player at hand was paid since it last moved."""
        self._paid[self.env.agent_selection] += float(self.env.last(observe=False)[1])


def mask_of(seen: Any, info: Mapping[str, Any]) -> Any:
    """Which actions are legal, as an observation or else an info says; None where neither does."""
    seen = seen if isinstance(seen, Mapping) else {}
    return seen.get("action_mask", info.get("action_mask"))
