"""``textarena:NAME``: TextArena's games in their own words.

The package reads a move in square brackets and judges it: an invalid one is shown to its player
once, a second one in a row loses the game. It draws from Python's global stream of random numbers;
here each game has a stream of its own, so that games that are played at once do not disturb each
other.
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
    """One game at a time of a registered one."""

    def __init__(
        self, name: str, identity: str, options: Mapping[str, str], settings: TextArenaSettings
    ) -> None:
        """
        Args:
            name: what messages begin with.
            identity: a registered name, such as ``PigDice-v0-short-train``; those that end with
                ``-train`` show the rules and the board, others everything that was said.
            options: keywords of the game's own.
            settings: how it is told.

        Raises:
            UserError: no such game, or one that so many cannot play.
        """
        if identity not in ENV_REGISTRY:
            raise UserError(
                f"env {name!r}: TextArena has no such game; {suggest(identity, ENV_REGISTRY)}."
            )
        self.settings = settings
        registered: Any = ENV_REGISTRY[identity]
        given = read_parameters(options, creator(registered.entry_point), title=f"env {name!r}")
        self._make = partial(textarena.make, identity, **given)
        self._stream = random.Random(0).getstate()
        self.players = [f"player_{place}" for place in range(self._count(name))]
        self._seat, self._seen, self._over = 0, "", True
        self._legal: list[str] = []
        self._rules: list[str] = []

    def reset(self, seed: int) -> None:
        self._stream = random.Random(seed).getstate()
        with self._own_stream():
            # A wrapper of the package remembers what it told in earlier games.
            self.env: Any = self._make()
            self.env.reset(num_players=len(self.players), seed=seed)
            told = [one for seen in self.env.state.observations.values() for one in seen]
            self._rules = [text for _, text, kind in told if kind is ObservationType.PROMPT]
            self._look()
        self._over = False

    def turn(self) -> str | None:
        return None if self._over else self.players[self._seat]

    def view(self) -> str:
        menu = enumerate(self._legal if self.settings.menu else ())
        return "\n".join([self._seen, *(f"{place} {move}" for place, move in menu)])

    def moves(self) -> Sequence[str]:
        return [str(k) for k in range(len(self._legal))] if self.settings.menu else self._legal

    def play(self, answer: str) -> bool:
        if self.settings.menu and (move := read_move(answer, self.moves())):
            answer = self._legal[int(move)]
        elif "[" not in answer:
            answer = f"[{answer.strip()}]"
        seat, before = self._seat, self._mistakes()
        with self._own_stream():
            self._over, _ = self.env.step(action=answer)
            if not self._over:
                self._look()
        lost = self.env.state.game_info.get(seat, {}).get("invalid_move", False)
        return not lost and self._mistakes() <= before

    def rewards(self) -> Mapping[str, float]:
        paid = (self.env.state.rewards if self._over else None) or {}
        return {player: float(paid.get(seat, 0)) for seat, player in enumerate(self.players)}

    def _look(self) -> None:
        """Read the position of whoever moves next."""
        self._seat, seen = self.env.get_observation()
        seen = seen if isinstance(seen, str) else "\n".join(message for _, message, _ in seen)
        self._legal = legal_in(seen)
        for rules in self._rules if not self.settings.rules else ():
            seen = seen.replace(rules, "")
        self._seen = re.sub(r"\n\s*\n+", "\n", seen).strip()

    def _mistakes(self) -> int:
        return getattr(self.env.state, "error_count", 0)

    def _count(self, name: str) -> int:
        """How many play: as many as are asked for, two or as few as the game takes."""
        for count in [self.settings.players] if self.settings.players else [2, 1, *range(3, 16)]:
            try:
                with self._own_stream():
                    self._make().reset(num_players=count, seed=0)
                return count
            except (AssertionError, ValueError, KeyError, IndexError):
                continue
        raise UserError(
            f"env {name!r} cannot be played by {self.settings.players or '1 to 15'}; say how many "
            "with --env.players."
        )

    @contextmanager
    def _own_stream(self) -> Iterator[None]:
        """Python's random numbers come from this game's stream."""
        outer = random.getstate()
        random.setstate(self._stream)
        try:
            yield
        finally:
            self._stream = random.getstate()
            random.setstate(outer)


def legal_in(seen: str) -> list[str]:
    """The moves that the last line of the kind ``Available moves: '[0]', '[1]'`` lists."""
    lists = [found[0] for found in _LIST.finditer(seen)]
    return list(dict.fromkeys(_MOVE.findall(lists[-1]))) if lists else []
