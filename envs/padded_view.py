"""The padded view: fixed shapes for libraries that need them, such as TorchRL and SuperSuit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv

from coterie.envs.spaces import Seen, TokenSpace, View


class PaddedView(View):
    """A token view with ``Box`` and ``MultiDiscrete`` spaces; the pad id is the vocabulary size V.

    The observation is ``Dict(tokens: Box(0, V, (L,)), length: Box(0, L, (1,)),
    active: Box(0, 1, (1,)))``: the last L ids of the context, padded at the end. The action is
    ``MultiDiscrete([V + 1] * A)`` and ends at its first pad. Infos have two numbers,
    ``max_new_tokens`` (0 when inactive) and ``loss_weight``, because these libraries put every info
    into a tensor.
    """

    def __init__(
        self,
        env: ParallelEnv[str, dict[str, Any], Any],
        *,
        context_length: int = 512,
        action_length: int = 64,
    ) -> None:
        """Wrap a token view.

        Args:
            env: observations ``Dict(tokens, active)``, actions token arrays.
            context_length: L; longer contexts lose their beginning.
            action_length: A.
        """
        super().__init__(env)
        self._length = context_length
        self._pads: dict[str, int] = {}
        self._observation_spaces = {}
        self._action_spaces = {}
        for agent in self.possible_agents:
            space = env.action_space(agent)
            if not isinstance(space, TokenSpace):
                raise TypeError(f"{agent}: a padded view wraps a token view, not {space}")
            pad = self._pads[agent] = space.vocab_size
            self._observation_spaces[agent] = spaces.Dict(
                {
                    "tokens": spaces.Box(0, pad, (context_length,), np.int64),
                    "length": spaces.Box(0, context_length, (1,), np.int64),
                    "active": spaces.Box(0, 1, (1,), np.int64),
                }
            )
            self._action_spaces[agent] = spaces.MultiDiscrete([pad + 1] * action_length)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        if seed is not None:
            self.seed_actions(seed)
        observations, infos = self.env.reset(seed=seed, options=options)
        self.agents = list(self.env.agents)
        return self._pad(observations), _numbers(infos)

    def step(self, actions: Mapping[str, Any]) -> Any:
        observations, rewards, terminations, truncations, infos = self.env.step(
            {agent: self._cut(agent, action) for agent, action in actions.items()}
        )
        self.agents = list(self.env.agents)
        return self._pad(observations), rewards, terminations, truncations, _numbers(infos)

    def _cut(self, agent: str, action: Any) -> npt.NDArray[np.int64]:
        ids = np.asarray(action).reshape(-1)
        pads = np.flatnonzero(ids == self._pads.get(agent, -1))
        return ids[: pads[0]] if len(pads) else ids

    def _pad(self, observations: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        padded: dict[str, dict[str, Any]] = {}
        for agent, observation in observations.items():
            shown = observation["tokens"][-self._length :]
            tokens = np.full(self._length, self._pads[agent], dtype=np.int64)
            tokens[: len(shown)] = shown
            padded[agent] = {
                "tokens": tokens,
                "length": np.array([len(shown)], dtype=np.int64),
                "active": np.array([observation["active"]], dtype=np.int64),
            }
        return padded


def _numbers(infos: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        agent: {
            "max_new_tokens": int(info.get("max_new_tokens", 0)),
            "loss_weight": float(info.get("loss_weight", 1.0)),
        }
        for agent, info in infos.items()
    }
