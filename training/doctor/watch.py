"""Environments and policies that note what passes between them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabulary import Completion, Policy, Prompt, Sampling

Tokens = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """One call of a policy that was answered."""

    prompt: Prompt
    sampling: Sampling
    completion: Completion


class WatchedPolicy:
    """Implements :class:`vocabulary.Policy`: another one, with what it was asked."""

    def __init__(self, policy: Policy) -> None:
        self.asked: list[Asked] = []
        self._policy = policy

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        completion = await self._policy(prompt, sampling)
        self.asked.append(Asked(prompt, sampling, completion))
        return completion


class WatchedEnv:
    """A token environment, with the agents whose context was not continued at its end."""

    def __init__(self, env: Any, broken: list[str]) -> None:
        self.agents: list[str] = []
        self._env, self._broken = env, broken
        self._append_only = getattr(env, "append_only", True)
        self._seen: dict[str, Tokens] = {}
        self._active: set[str] = set()

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observations, infos = self._env.reset(seed=seed, options=options)
        self._seen = {}
        self._look(observations, infos)
        return observations, infos

    def step(self, actions: dict[str, Any]) -> Any:
        for agent in self._active & actions.keys():
            self._seen[agent] = np.concatenate([self._seen[agent], actions[agent]])
        result = self._env.step(actions)
        self._look(result[0], result[-1])
        return result

    def _look(self, observations: dict[str, Any], infos: dict[str, Any]) -> None:
        self.agents, self._active = self._env.agents, set()
        for agent, observation in observations.items():
            tokens = np.asarray(observation["tokens"], np.int64)
            seen = self._seen.get(agent, tokens[:0])
            continued = np.array_equal(tokens[: len(seen)], seen)
            if self._append_only and not continued and not infos[agent].get("fresh"):
                self._broken.append(agent)
            self._seen[agent] = tokens
            if observation.get("active", 1):
                self._active.add(agent)
