"""Play a few episodes as in training, and record what environments and policies exchange."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import (
    Completion,
    Episode,
    Policy,
    Problem,
    Prompt,
    Sampling,
    Trajectory,
    derive_seed,
)
from coterie.envs.adapt import watch_spaces
from coterie.rollouts import Collector, Deadlines, tasks_for
from coterie.training.config.role_sampling import role_sampling
from coterie.training.config.train_settings import TrainSettings
from coterie.training.runtime import Runtime
from coterie.training.session import Session

Tokens = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PolicyCall:
    """An answered call of a policy."""

    prompt: Prompt
    sampling: Sampling
    completion: Completion


class WatchedPolicy:
    """A :class:`coterie.datatypes.Policy` that wraps another policy and records its calls."""

    def __init__(self, policy: Policy) -> None:
        self.asked: list[PolicyCall] = []
        self._policy = policy

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        completion = await self._policy(prompt, sampling)
        self.asked.append(PolicyCall(prompt, sampling, completion))
        return completion


class WatchedEnv:
    """Wraps a token environment and records agents whose context did not continue the last one."""

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


_PROBLEMS, _REPLICAS = 8, 4


@dataclass(frozen=True)
class Observed:
    """Records of the played episodes."""

    episodes: Sequence[Episode]
    asked: Mapping[str, Sequence[PolicyCall]]
    """Role -> answered calls, in order of the answers."""
    broken: Sequence[str]
    """Agents whose context did not continue the last one, one entry per event."""
    outside: str = ""
    """Message about the first observation outside its declared space."""

    def rows(self, role: str | None = None) -> list[Trajectory]:
        """The rows of one role, or of all roles."""
        return [
            row
            for episode in self.episodes
            for row in episode.trajectories
            if role in (None, row.role)
        ]


class Examined(Session):
    """A session with the settings and the runtime parts that the doctor needs."""

    def __init__(self, runtime: Runtime, settings: TrainSettings) -> None:
        """``settings``: the settings from which ``runtime`` was built."""
        super().__init__(runtime)
        self.settings, self.make_env = settings, runtime.make_env
        self.group_key, self.replicas = runtime.sampler.group_key, runtime.sampler.replicas


def few(session: Examined, problems: Sequence[Problem]) -> tuple[Sequence[Problem], int]:
    """(the problems to play, episodes per problem), at most those of a training step."""
    count = min(_PROBLEMS, session.settings.rollout.problems_per_step)
    return problems[:count], min(_REPLICAS, session.replicas)


async def observe(
    session: Examined, problems: Sequence[Problem], policies: Mapping[str, Policy], *, name: str
) -> Observed:
    """Play the first of ``problems``; ``name`` seeds the sampling.

    Args:
        session: the opened session.
        problems: the problems of a step.
        policies: role -> policy.
        name: tells samples of several rounds apart.
    """
    rollout = session.settings.rollout
    taken, replicas = few(session, problems)
    watched = {role: WatchedPolicy(policy) for role, policy in policies.items()}
    broken: list[str] = []
    outside: list[Callable[[], str]] = []

    def watched_env() -> WatchedEnv:
        env = session.make_env()
        outside.append(watch_spaces(env))
        return WatchedEnv(env, broken)

    collector = Collector(
        watched_env,
        watched,
        sampling=role_sampling(rollout, session.settings.agents),
        deadlines=Deadlines(rollout.call_deadline_s, rollout.episode_deadline_s),
        concurrency=rollout.concurrency,
    )
    seed = derive_seed(session.settings.run.seed, "doctor", name)
    episodes = await collector.collect(tasks_for(taken, seed=seed, step=1, replicas=replicas))
    outside_space = next(filter(None, (message() for message in outside)), "")
    return Observed(
        episodes, {role: policy.asked for role, policy in watched.items()}, broken, outside_space
    )
