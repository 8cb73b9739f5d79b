"""``textarena:NAME``: TextArena's games with their own texts.

The package parses and judges a move in square brackets: after an invalid move the player may try
once more, and a second one in a row loses the game. The package draws from Python's global random
stream; here each game has its own stream, so that parallel games do not affect each other.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import textarena
from textarena.core import ObservationType
from textarena.envs.registration import ENV_REGISTRY

from coterie.datatypes import UserError, suggest
from coterie.envs.registry import EnvSpec
from coterie.extras.games.game import Game, TextArenaSettings, game_spec, read_move
from coterie.extras.games.options import creator, read_parameters

_LIST = re.compile(r"\b(?:available|legal|possible|valid) (?:actions?|moves?)\b.*\]", re.IGNORECASE)
_MOVE = re.compile(r"\[[^\[\]\n]{1,40}\]")


def spec(name: str, identity: str, options: Mapping[str, str]) -> EnvSpec:
    """The spec of ``textarena:IDENTITY``."""
    return game_spec(
        name, lambda settings: TextArenaGame(name, identity, options, settings), TextArenaSettings
    )


class TextArenaGame(Game):
    """A registered TextArena game, one game at a time."""

    def __init__(
        self, name: str, identity: str, options: Mapping[str, str], settings: TextArenaSettings
    ) -> None:
        """
        Args:
            name: prefix of error messages.
            identity: a registered name, such as ``PigDice-v0-short-train``; names that end with
                ``-train`` show the rules and the board, others the whole conversation.
            options: keywords of the game.
            settings: settings of prompts and answers.

        Raises:
            UserError: the game does not exist, or does not allow this number of players.
        """
        if identity not in ENV_REGISTRY:
            raise UserError(
                f"env {name!r}: TextArena has no such game; {suggest(identity, ENV_REGISTRY)}."
            )
        self.settings = settings
        registered: Any = ENV_REGISTRY[identity]
        keywords = read_parameters(options, creator(registered.entry_point), title=f"env {name!r}")
        self._make = partial(textarena.make, identity, **keywords)
        self._stream = random.Random(0).getstate()
        self.players = [f"player_{number}" for number in range(self._count_players(name))]
        self._seat, self._seen, self._over = 0, "", True
        self._legal: list[str] = []
        self._rules: list[str] = []

    def reset(self, seed: int) -> None:
        self._stream = random.Random(seed).getstate()
        with self._random_stream():
            # A wrapper of the package keeps text from earlier games.
            self.env: Any = self._make()
            self.env.reset(num_players=len(self.players), seed=seed)
            messages = [
                message for seen in self.env.state.observations.values() for message in seen
            ]
            self._rules = [text for _, text, kind in messages if kind is ObservationType.PROMPT]
            self._look()
        self._over = False

    def asks(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        if self._over:
            return {}
        menu = enumerate(self._legal if self.settings.menu else ())
        view = "\n".join([self._seen, *(f"{number} {move}" for number, move in menu)])
        return {self.players[self._seat]: (view, self._moves())}

    def play(self, answer: str) -> bool:
        if self.settings.menu and (move := read_move(answer, self._moves())):
            answer = self._legal[int(move)]
        elif "[" not in answer:
            answer = f"[{answer.strip()}]"
        seat, before = self._seat, self._mistakes()
        with self._random_stream():
            self._over, _ = self.env.step(action=answer)
            if not self._over:
                self._look()
        lost = self.env.state.game_info.get(seat, {}).get("invalid_move", False)
        return not lost and self._mistakes() <= before

    def rewards(self) -> Mapping[str, float]:
        paid = (self.env.state.rewards if self._over else None) or {}
        return {player: float(paid.get(seat, 0)) for seat, player in enumerate(self.players)}

    def _moves(self) -> Sequence[str]:
        return [str(k) for k in range(len(self._legal))] if self.settings.menu else self._legal

    def _look(self) -> None:
        """Read the position of the next player to move."""
        self._seat, seen = self.env.get_observation()
        seen = seen if isinstance(seen, str) else "\n".join(message for _, message, _ in seen)
        self._legal = legal_in(seen)
        for rules in self._rules if not self.settings.rules else ():
            seen = seen.replace(rules, "")
        self._seen = re.sub(r"\n\s*\n+", "\n", seen).strip()

    def _mistakes(self) -> int:
        return getattr(self.env.state, "error_count", 0)

    def _count_players(self, name: str) -> int:
        """The number of players: the setting, or two, or the game's minimum."""
        for count in [self.settings.players] if self.settings.players else [2, 1, *range(3, 16)]:
            try:
                with self._random_stream():
                    self._make().reset(num_players=count, seed=0)
                return count
            except (AssertionError, ValueError, KeyError, IndexError):
                continue
        raise UserError(
            f"env {name!r} cannot be played by {self.settings.players or '1 to 15'}; say how many "
            "with --env.players."
        )

    @contextmanager
    def _random_stream(self) -> Iterator[None]:
        """Draw Python's random numbers from this game's stream."""
        outer = random.getstate()
        random.setstate(self._stream)
        try:
            yield
        finally:
            self._stream = random.getstate()
            random.setstate(outer)


def legal_in(seen: str) -> list[str]:
    """Parse the moves in the last line of the form ``Available moves: '[0]', '[1]'``."""
    lists = [match[0] for match in _LIST.finditer(seen)]
    return list(dict.fromkeys(_MOVE.findall(lists[-1]))) if lists else []
