"""Spaces that are made once, at construction."""

from typing import Any

from gymnasium import Space
from pettingzoo import ParallelEnv


class SpacedEnv(ParallelEnv[str, dict[str, Any], Any]):
    """Base of environments and views whose spaces never change.

    A subclass sets both mappings, agent -> space.
    """

    _observation_spaces: dict[str, Space[Any]]
    _action_spaces: dict[str, Space[Any]]

    def observation_space(self, agent: str) -> Space[Any]:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        return self._action_spaces[agent]

    def _seed_actions(self, seed: int) -> None:
        """Every agent draws actions of its own."""
        for place, space in enumerate(self._action_spaces.values()):
            space.seed(seed + place)
