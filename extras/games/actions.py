"""Integer actions as text: how a prompt describes them and how an answer is parsed."""

import enum
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from coterie.datatypes import UserError
from coterie.envs.adapt import is_of_integers
from coterie.extras.games.aec_game import mask_of

_INTEGER = r"(?<!\w)-\d{1,18}|\d{1,18}"


class Actions:
    """The actions of one player, entry by entry; a ``Discrete`` space has a single entry."""

    def __init__(self, space: Space[Any], names: Any = None, *, title: str) -> None:
        """
        Args:
            space: an integer space, see :func:`coterie.envs.adapt.is_of_integers`.
            names: names of the actions of a ``Discrete`` space: number -> name, or a list that
                starts at the first action. Without names, actions are plain numbers.
            title: prefix of error messages.

        Raises:
            UserError: the space is not supported, or the names do not match its actions.
        """
        if not is_of_integers(space):
            raise UserError(
                f"{title} acts in {space}; it needs Discrete, MultiDiscrete, MultiBinary or a Box "
                "of integers. Actions in text need no discrete: before the name."
            )
        self.space, self.title = space, title
        self._low, self._high = _bounds(space)
        self._names = self._by_number(names) if isinstance(space, spaces.Discrete) else {}
        words = sorted(map(re.escape, self._names.values()), key=len, reverse=True)
        pattern = "|".join([*(rf"(?<!\w){word}(?!\w)" for word in words), _INTEGER])
        self._read = re.compile(pattern, re.IGNORECASE)

    def listed(self, seen: Any, info: Mapping[str, Any]) -> list[str]:
        """The legal moves by number; empty if an answer consists of several numbers."""
        if not isinstance(self.space, spaces.Discrete):
            return []
        return [str(number) for number in self._legal(mask_of(seen, info))[0]]

    def text(self, seen: Any, info: Mapping[str, Any]) -> str:
        """Describe the actions for the prompt, without the list of moves; may be empty."""
        legal = self._legal(mask_of(seen, info))
        if isinstance(self.space, spaces.Discrete):
            return "\n".join(f"{k} {self._names[k]}" for k in legal[0] if k in self._names)
        ranges = [_range_text(entry) for entry in legal]
        numbers = f"Answer with {len(ranges)} number{'s' * (len(ranges) > 1)}"
        if len(ranges) > 1 and len(set(ranges)) == 1:
            return f"{numbers}, each {ranges[0]}"
        return f"{numbers}: {', '.join(ranges)}"

    def read(self, answer: str, seen: Any, info: Mapping[str, Any]) -> Any:
        """Parse an answer's first names or numbers as an action; None if it is not legal.

        Args:
            answer: the player's text.
            seen: the player's observation, which may hold a mask.
            info: the player's info, which may hold one too.
        """
        legal = self._legal(mask_of(seen, info))
        words = [match[0] for match in self._read.finditer(answer)][: len(legal)]
        by_name = {name.casefold(): number for number, name in self._names.items()}
        values = [by_name[w] if (w := word.casefold()) in by_name else int(word) for word in words]
        if len(values) < len(legal) or not all(v in allowed for v, allowed in zip(values, legal)):
            return None
        if isinstance(self.space, spaces.Discrete):
            return values[0]
        return np.array(values, self.space.dtype).reshape(self.space.shape or ())

    def _legal(self, mask: Any) -> list[Sequence[int]]:
        """The legal values of each entry."""
        values = [range(low, high + 1) for low, high in zip(self._low, self._high)]
        if mask is None:
            return list(values)
        parts = [np.ravel(part) for part in mask]
        flat = np.concatenate(parts).astype(bool) if parts else np.zeros(0, bool)
        widths = [len(entry) for entry in values]
        if len(flat) != sum(widths):
            raise UserError(
                f"{self.title}: action_mask has {len(flat)} entries; {self.space} needs "
                f"{sum(widths)}, one for each action."
            )
        masks = np.split(flat, np.cumsum(widths)[:-1])
        if not all(mask.any() for mask in masks):
            raise UserError(
                f"{self.title}: action_mask leaves no move; allow one to whoever is asked, or take "
                "the player out of agents."
            )
        return [[v for v, ok in zip(entry, mask) if ok] for entry, mask in zip(values, masks)]

    def _by_number(self, names: Any) -> dict[int, str]:
        if names is None:
            return {}
        first, last = self._low[0], self._high[0]
        if isinstance(names, Mapping):
            pairs = [(int(number), str(name)) for number, name in names.items()]
        else:
            pairs = [(first + index, str(name)) for index, name in enumerate(names)]
            if len(pairs) != last - first + 1:
                raise UserError(
                    f"{self.title}: {len(pairs)} names for {last - first + 1} actions; give as "
                    "many as there are actions."
                )
        named = {number: " ".join(name.split()) for number, name in pairs}
        known = [name.casefold() for name in named.values()]
        for name in known:
            if known.count(name) > 1 or not name or re.fullmatch(r"-?\d+", name):
                raise UserError(
                    f"{self.title}: an action is named {name!r}; give each action a name of its "
                    "own that is no number."
                )
        return {number: name for number, name in named.items() if first <= number <= last}


def names_in(env: Any, player: str) -> Any:
    """Return the names that an environment gives a player's actions, for :class:`Actions`.

    The first of these that exists counts: ``get_action_meanings()``, ``Actions`` or ``actions``
    (an ``IntEnum``), ``action_names`` (also by player), ``metadata["action_names"]``.
    """
    if callable(meanings := getattr(env, "get_action_meanings", None)):
        return meanings()
    for attribute in ("Actions", "actions"):
        value = getattr(env, attribute, None)
        if isinstance(value, type) and issubclass(value, enum.IntEnum):
            return {int(member): name for name, member in value.__members__.items()}
    named = getattr(env, "action_names", None)
    if named is None:
        named = (getattr(env, "metadata", None) or {}).get("action_names")
    return named.get(player, named) if isinstance(named, Mapping) else named


def _bounds(space: Any) -> tuple[list[int], list[int]]:
    """The smallest and the largest value of each entry."""
    if isinstance(space, spaces.Discrete):
        return [int(space.start)], [int(space.start + space.n - 1)]
    if isinstance(space, spaces.MultiDiscrete):
        low = np.ravel(space.start)
        return low.tolist(), (low + np.ravel(space.nvec) - 1).tolist()
    if isinstance(space, spaces.MultiBinary):
        entries = int(np.prod(space.shape))
        return [0] * entries, [1] * entries
    return np.ravel(space.low).tolist(), np.ravel(space.high).tolist()


def _range_text(values: Sequence[int]) -> str:
    if isinstance(values, range):
        return f"{values[0]} to {values[-1]}"
    return " or ".join(map(str, values)) or "nothing"
