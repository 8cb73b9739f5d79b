"""A game from another package, played as text: turns, observations and legal moves.

Each position starts the reader's context anew, so a context is only as long as one position.
If the game lists its legal moves, the second-to-last line of a prompt holds them
(``Moves: 0 2 5``).
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from coterie.datatypes import MOVES, Problem, ScoreRequests, UserError, Validated, cause_of
from coterie.datatypes.thinking import after_thinking
from coterie.envs.conversation import ConversationEnv
from coterie.envs.env_spec import EnvSpec, never_rereads
from coterie.envs.turns import Ask, Conversation, Outcome, Turn

ILLEGAL_REWARD = -1.0
"""Penalty for an answer that is not a legal move, where the package defines none."""
_NUMBER = re.compile(r"\d{1,9}")
_MODEL = {"model": "tiny:dora"}  # explores most of the tiny models
_EVERYONE = "player"  # a single role that plays every seat


class Game(ABC):
    """One game, played repeatedly; any method may raise the package's own exceptions."""

    players: Sequence[str]
    """Names of the players."""
    contest: bool = True
    """Whether the highest reward wins; False if all rewards are equal or no winner is known."""
    replicas: int | None = None
    """How many games of one seed are compared, if the package says so."""
    reads_thinking: bool = False
    """Whether :meth:`play` gets an answer with its thinking; it gets what follows otherwise."""

    @abstractmethod
    def reset(self, seed: int) -> None:
        """Start a new game."""

    @abstractmethod
    def asks(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        """The players who move now, each with its observation as text and the legal moves, which
        are empty if the game does not list them; nobody when the game is over."""

    @abstractmethod
    def play(self, answer: str) -> bool:
        """Make the move that an answer of the next player names; return whether it was legal."""

    @abstractmethod
    def rewards(self) -> Mapping[str, float]:
        """Each player's total reward since the reset."""

    def measured(self) -> Mapping[str, Mapping[str, Any]]:
        """What else the package measured of each player."""
        return {}


@dataclass(frozen=True)
class GameSettings(Validated):
    """Prompts and answers of a game."""

    max_new_tokens: Annotated[int, Ge(1)] = 2
    """Longest answer; a model that reasons first needs more."""
    ending: str = " ="
    """Text between the list of moves and the answer. Tiny models write a digit after an equals
    sign; ask other models in words."""
    stop: tuple[str, ...] = ("\n",)
    """Strings that end an answer."""
    max_moves: Annotated[int, Ge(1)] = 200
    """Moves of all players together after which a game is truncated."""
    rotate: bool = False
    """Draw from the game's seed which role sits where, so that moving first favours no role."""


@dataclass(frozen=True)
class TextArenaSettings(GameSettings):
    """Prompts and answers of a TextArena game."""

    max_new_tokens: Annotated[int, Ge(1)] = 8
    """Longest answer; a model that reasons first needs more."""
    stop: tuple[str, ...] = ()
    """Strings that end an answer."""
    menu: bool = False
    """Number the moves that the game names in brackets, and read an answer as such a number: for
    models that write digits better than words."""
    rules: bool = True
    """Repeat the rules with every position; off: the position alone."""
    players: int = 0
    """How many play; 0: two, or as few as the game can be played by."""


class GameEnv(ConversationEnv):
    """Any :class:`Game` as a text environment.

    Each player is a separate role; the single role of ``--roles player`` plays every seat.
    """

    metadata = {**ConversationEnv.metadata, "name": "game_v0"}  # noqa: RUF012
    settings_class = GameSettings

    def __init__(
        self, name: str, make_game: Callable[[Any], Game], settings: Any, **services: Any
    ) -> None:
        """
        Args:
            name: the name as the user writes it.
            make_game: function from settings to the game.
            settings: a :class:`GameSettings`.
            services: ``roles`` and ``render_mode``, as for :class:`ConversationEnv`.
        """
        self.title = name
        self.game = make_game(settings)
        self.default_roles = tuple(self.game.players)
        super().__init__(settings, **services)
        # A turn has one move at least.
        self.most_turns = self.settings.max_moves

    def check_roles(self) -> None:
        if len(self.roles) not in (1, len(self.game.players)):
            raise UserError(
                f"{self.title}: {len(self.roles)} roles; name {len(self.game.players)}, one for "
                "each player, or a single one that plays them all."
            )

    def places(self) -> Mapping[str, int]:
        return dict.fromkeys(self.roles, len(self.game.players) // len(self.roles))

    def replicas(self) -> int | None:
        return self.game.replicas

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        game, agents = self.game, list(self.possible_agents)
        if self.settings.rotate:
            random.shuffle(agents)
        seats = dict(zip(game.players, agents))
        moves, illegal = Counter[str](), Counter[str]()
        game.reset(self.episode_seed % 2**31)
        while (shown := game.asks()) and moves.total() < self.settings.max_moves:
            asks = {seats[player]: self._ask(*position) for player, position in shown.items()}
            answers = yield Turn(asks, lambda answers: ScoreRequests())
            for player in shown:
                moves[player] += 1
                answer = answers.get(seats[player], "")
                final = after_thinking(answer)
                # A thought that was cut off names no move.
                whole = game.reads_thinking and final.strip()
                illegal[player] += not game.play(answer if whole else final)
        paid, said = game.rewards(), game.measured()
        measured = {
            agent: {
                **said.get(player, {}),
                "moves": moves[player],
                "illegal": float(illegal[player] > 0),
                **(result(player, paid) if game.contest else {}),
            }
            for player, agent in seats.items()
        }
        terms = {agent: {"game": float(paid[player])} for player, agent in seats.items()}
        return Outcome(terms, measured, truncated=agents if shown else ())

    def _ask(self, view: str, legal: Sequence[str]) -> Ask:
        listed = f"\n{MOVES}{' '.join(legal)}" if legal else ""
        return Ask(f"{view}{listed}{self.settings.ending}", "fresh")


_RESULTS = {
    "reset": ("observations", "infos"),
    "step": ("observations", "rewards", "terminations", "truncations", "infos"),
}


def checked(env: Any, method: str, returned: Any) -> Any:
    """Check the values that ``reset`` or ``step`` of a game has returned.

    Raises:
        UserError: another number of values; an old Gym's ``reset`` returns only observations.
    """
    parts = _RESULTS[method]
    if (
        not isinstance(returned, tuple)
        or len(returned) != len(parts)
        or not isinstance(returned[-1], Mapping)
    ):
        raise UserError(
            f"{type(getattr(env, 'unwrapped', env)).__name__}: {method}() must give {len(parts)} "
            f"values: {', '.join(parts)}; an old Gym gives fewer."
        )
    return returned


def result(player: str, paid: Mapping[str, float]) -> dict[str, Any]:
    """One player's result in a game of several players; empty for a single player.

    The player with the highest reward wins; several with the same highest reward draw.
    """
    best = max((value for other, value in paid.items() if other != player), default=None)
    if best is None:
        return {}
    outcome = "win" if paid[player] > best else "draw" if paid[player] == best else "loss"
    return {
        "outcome": outcome,
        **{name: float(outcome == which) for name, which in _RATES.items()},
    }


_RATES = {"won": "win", "drawn": "draw", "lost": "loss"}


def read_move(answer: str, moves: Sequence[str]) -> str | None:
    """The legal move that an answer is, or that its first number is; None if there is none."""
    text = answer.strip()
    number = _NUMBER.search(text)
    move = text if text in moves else number[0] if number else None
    return move if move in moves else None


def game_spec(
    name: str, make_game: Callable[[Any], Game], settings: type = GameSettings
) -> EnvSpec:
    """The spec of a game: one role per player, all played by tiny models by default.

    Args:
        name: the name as the user writes it.
        make_game: function from settings to the game.
        settings: class of the settings.

    Raises:
        UserError: the package cannot create the game.
    """
    try:
        players = tuple(make_game(settings()).players)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"env {name!r} cannot be made: {cause_of(error)}.") from error
    agents = dict.fromkeys((*players, _EVERYONE), _MODEL)

    def factory(settings: Any = settings(), **services: Any) -> GameEnv:  # noqa: B008 (frozen)
        return GameEnv(name, make_game, settings, **services)

    defaults = {"agents": agents, "rollout": {"temperature": 1.5}}
    return EnvSpec(name, 0, factory, settings, players, rereads=never_rereads, defaults=defaults)
