"""``discrete:pkg.module:Env``: the user's own PettingZoo environment with integer actions.

An illegal answer ends the episode, with reward -1 for its player.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge
from pettingzoo import AECEnv

from coterie.datatypes import INFO_KEYS, UserError
from coterie.envs.adapt import space_of
from coterie.envs.contract import why_not_plain
from coterie.envs.guarded import check_ends, check_metadata
from coterie.envs.registry import EnvSpec, make_plain
from coterie.extras.games.actions import Actions, names_in
from coterie.extras.games.aec_game import AECGame
from coterie.extras.games.game import ILLEGAL_REWARD, Game, GameSettings, checked, game_spec
from coterie.extras.games.gymnasium_game import observation_text
from coterie.extras.games.options import read_parameters

_UNREAD = ("reward_terms", "groups", "loss_weight")


@dataclass(frozen=True)
class DiscreteSettings(GameSettings):
    """Prompts and answers of an environment with integer actions."""

    max_new_tokens: Annotated[int, Ge(1)] = 8
    """Longest answer; a model that reasons first needs more, and so does an action of many
    numbers."""


def spec(name: str, identity: str, options: Mapping[str, str]) -> EnvSpec:
    """The spec of ``discrete:IDENTITY``."""
    title = f"env {name!r}"

    def read(make_env: Callable[..., Any]) -> Mapping[str, Any]:
        return read_parameters(options, make_env, title=title) if options else {}

    def make_game(settings: Any) -> Game:
        env = make_plain(identity, read, title=title)
        check_metadata(env)
        actions = {
            player: Actions(
                space_of(env, "action_space", player),
                names_in(env, player),
                title=f"{title}: {player}",
            )
            for player in env.possible_agents
        }
        game = (TurnsGame if isinstance(env, AECEnv) else SimultaneousGame)(env, actions)
        game.replicas = env.metadata.get("replicas")
        return game

    return game_spec(name, make_game, DiscreteSettings)


class TurnsGame(AECGame):
    """An ``AECEnv``: one player moves at a time."""

    contest = False

    def __init__(self, env: Any, actions: Mapping[str, Actions]) -> None:
        """
        Args:
            env: a PettingZoo ``AECEnv``.
            actions: player -> its actions.
        """
        super().__init__(env)
        self._actions = actions
        self._last: dict[str, Any] = {}

    def reset(self, seed: int) -> None:
        super().reset(seed)
        self._last = {}

    def asks(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        player = self.turn()
        return {} if player is None else {player: _shown(self._actions[player], *self.position())}

    def play(self, answer: str) -> bool:
        action = self._actions[self.env.agent_selection].read(answer, *self.position())
        if action is None:
            self.forfeit()
        else:
            self.act(action)
        return action is not None

    def measured(self) -> Mapping[str, Mapping[str, Any]]:
        return _measured(self._last, self._actions)

    def _collect(self) -> None:
        super()._collect()
        self._last[self.env.agent_selection] = self.env.last(observe=False)[4]


class SimultaneousGame(Game):
    """A ``ParallelEnv``: all living players move at once.

    The environment steps when all have answered. An illegal answer ends the game: its player pays
    for it, and no action is carried out.
    """

    contest = False

    def __init__(self, env: Any, actions: Mapping[str, Actions]) -> None:
        """
        Args:
            env: a PettingZoo ``ParallelEnv``.
            actions: player -> its actions.
        """
        self.env = env
        self.players = list(env.possible_agents)
        self._actions = actions
        self._seen: Mapping[str, Any] = {}
        self._infos: Mapping[str, Any] = {}
        self._waiting: list[str] = []
        self._chosen: dict[str, Any] = {}
        self._paid: dict[str, float] = {}
        self._last: dict[str, Any] = {}

    def reset(self, seed: int) -> None:
        self._seen, self._infos = checked(self.env, "reset", self.env.reset(seed=seed))
        self._chosen, self._last = {}, {}
        self._paid, self._waiting = dict.fromkeys(self.players, 0.0), list(self.env.agents)

    def asks(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        return {
            player: _shown(self._actions[player], *self._position(player))
            for player in self._waiting
        }

    def play(self, answer: str) -> bool:
        player = self._waiting.pop(0)
        action = self._actions[player].read(answer, *self._position(player))
        self._chosen[player] = action
        if not self._waiting:
            chosen, self._chosen = self._chosen, {}
            self._finish(chosen)
        return action is not None

    def rewards(self) -> Mapping[str, float]:
        return self._paid

    def measured(self) -> Mapping[str, Mapping[str, Any]]:
        return _measured(self._last, self._actions)

    def _finish(self, chosen: Mapping[str, Any]) -> None:
        """Step with every player's action; None marks an illegal one."""
        if illegal := [player for player, action in chosen.items() if action is None]:
            for player in illegal:
                self._paid[player] += ILLEGAL_REWARD
            return
        step = checked(self.env, "step", self.env.step(dict(chosen)))
        self._seen, rewards, *ends, self._infos = step
        check_ends(self.env, *ends)
        for player, reward in rewards.items():
            self._paid[player] += float(reward)
        self._last |= {player: self._infos.get(player) for player in chosen}
        self._waiting = list(self.env.agents)

    def _position(self, player: str) -> tuple[Any, Mapping[str, Any]]:
        return self._seen[player], self._infos.get(player, {})


def _shown(actions: Actions, seen: Any, info: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """(the observation without its mask, and the actions' description; legal moves)."""
    shown = seen
    if isinstance(seen, Mapping) and "action_mask" in seen:
        shown = {key: part for key, part in seen.items() if key != "action_mask"}
        if list(shown) == ["observation"]:
            shown = shown["observation"]
    view = "\n".join(filter(None, (observation_text(shown), actions.text(seen, info))))
    return view, actions.listed(seen, info)


def _measured(
    infos: Mapping[str, Any], actions: Mapping[str, Actions]
) -> dict[str, dict[str, Any]]:
    """The plain data in each player's last info, without the keys of the environment contract.

    Raises:
        UserError: an info says how its player learns, which games do not read.
    """
    measured: dict[str, dict[str, Any]] = {}
    for player, info in infos.items():
        info = info if isinstance(info, Mapping) else {}
        if unread := [key for key in _UNREAD if key in info]:
            raise UserError(
                f"{actions[player].title} has {unread[0]} in its info, which discrete: does not "
                "read; leave it out, or let the environment act in text."
            )
        named = {*INFO_KEYS, "action_mask"}
        measured[player] = {
            key: value
            for key, value in info.items()
            if key not in named and not why_not_plain({key: value})
        }
    return measured
