"""Adapts PettingZoo environments with text or token actions to the environment contract.

Such environments need not import this project. Missing infos get the defaults of the contract: all
listed agents are active, the reward is one term, and replicas of a seed form a group for each role.
"""

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import Space, spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import (
    aec_to_parallel,
    turn_based_aec_to_parallel,
    turn_based_aec_to_parallel_wrapper,
)

from coterie.datatypes import TokenCodec, UserError, raised, role_of
from coterie.envs.contract import CONTEXTS, why_not_plain
from coterie.envs.guarded import Guarded, check_metadata, title_of
from coterie.envs.spaces import Seen, SpacedEnv, TextSpace, TokenSpace
from coterie.envs.token_view import TokenView

Kind = Literal["text", "tokens"]


def is_text_env(env: Any) -> bool:
    """Whether ``env`` has the spaces of the text contract: ``Dict(text, active)`` and string
    actions."""
    if not isinstance(env, ParallelEnv) or not env.possible_agents:
        return False
    agent = env.possible_agents[0]
    space = space_of(env, "observation_space", agent)
    named = isinstance(space, spaces.Dict) and {"text", "active"} <= set(space.keys())
    return named and action_kind(space_of(env, "action_space", agent)) == "text"


def space_of(env: Any, which: str, agent: str) -> Space[Any]:
    """Return a space of one agent.

    Args:
        env: a PettingZoo environment.
        which: ``observation_space`` or ``action_space``.
        agent: the agent.

    Raises:
        UserError: the environment does not return a space.
    """
    try:
        with warnings.catch_warnings():
            # PettingZoo's base class warns before it fails.
            warnings.simplefilter("ignore")
            space = getattr(env, which)(agent)
    except Exception as error:
        raise UserError(
            f"{title_of(env)}: {which}({agent!r}) {raised(error)}; it must "
            "give the same gymnasium space at every call."
        ) from error
    if not isinstance(space, Space):
        raise UserError(
            f"{title_of(env)}: {which}({agent!r}) is a {type(space).__name__}, not a gymnasium "
            "space."
        )
    return space


def action_kind(space: Space[Any]) -> Kind | None:
    """Return whether actions are strings, id arrays of any length, or neither (None)."""
    if isinstance(space, TextSpace | spaces.Text):
        return "text"
    if _vocabulary(space) is not None:
        return "tokens"
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.Discrete | spaces.MultiBinary):
        return None
    return "text" if isinstance(space.sample(), str) else None


def is_of_integers(space: Space[Any]) -> bool:
    """Whether an action is one integer or a fixed number of integers."""
    if isinstance(space, spaces.Box):
        return space.dtype is not None and space.dtype.kind in "iu"
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)


def adapt(
    env: Any,
    codecs: Mapping[str, TokenCodec] | None = None,
    *,
    view: Literal["token", "text"] = "token",
    name: str = "NAME",
) -> ParallelEnv[str, dict[str, Any], Any]:
    """Wrap a plain ``ParallelEnv`` or ``AECEnv`` so that it keeps the environment contract.

    In text environments each observation (a string, bare or under the key ``text`` or
    ``observation``) is a new message to its agent. In token environments the observation (an array
    of ids, bare or under ``tokens`` or ``observation``) is the agent's whole context, which need
    not continue the previous one. AEC environments use PettingZoo's conversions: agents of cyclic
    ones (``is_parallelizable``) act together, otherwise one agent is active at a time. A failed
    agent acts with an empty answer.

    Args:
        env: a PettingZoo environment with text or token actions.
        codecs: role -> codec; vocabularies must match those of a token environment.
        view: ``text`` keeps the strings of a text environment.
        name: the name that ``--env`` takes, for messages.

    Raises:
        UserError: an unsupported kind of environment, action or observation.
    """
    if isinstance(env, AECEnv):
        check_metadata(env)
        cyclic = env.metadata.get("is_parallelizable", False)
        with warnings.catch_warnings():
            # PettingZoo warns about a missing render_mode, which training does not need.
            warnings.filterwarnings("ignore", message=".*render_mode")
            env = aec_to_parallel(env) if cyclic else turn_based_aec_to_parallel(env)
    if not isinstance(env, ParallelEnv):
        raise UserError(f"{type(env).__name__} is neither a PettingZoo ParallelEnv nor an AECEnv.")
    adapted = _Adapted(env, name)
    if adapted.kind == "tokens":
        _check_vocabularies(adapted, codecs or {})
        if view == "text":
            raise UserError(f"{title_of(env)} speaks in token ids; it has no text view.")
        return adapted
    return TokenView(adapted, codecs) if view == "token" else adapted


class _Adapted(SpacedEnv):
    """Shows a plain environment as ``Dict(text, active)`` or ``Dict(tokens, active)``."""

    def __init__(self, env: ParallelEnv[str, Any, Any], name: str) -> None:
        self.env: Any = env
        self._in_turns = isinstance(env, turn_based_aec_to_parallel_wrapper)
        self.render_mode = getattr(env, "render_mode", None)
        self.possible_agents = list(env.possible_agents)
        self.agents: list[str] = []
        self.kind: Kind = _kind_of_actions(env, name)
        self._guarded = Guarded(env, tokens=self.kind == "tokens")
        self.metadata = {"group_keys": ("problem+role",), "default_group": "problem+role"}
        self.metadata |= self._guarded.metadata
        self.append_only = self.kind == "text"
        self._observation_spaces = {
            agent: spaces.Dict(
                {self.kind: self._content_space(agent), "active": spaces.Discrete(2)}
            )
            for agent in self.possible_agents
        }
        self._action_spaces = {agent: self._content_space(agent) for agent in self.possible_agents}

    def _content_space(self, agent: str) -> Space[Any]:
        """A new space of what an agent reads and writes; each space has its own random stream."""
        if self.kind == "text":
            return TextSpace()
        return TokenSpace(_vocabulary(self.env.action_space(agent)) or 1)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        if seed is not None:
            self.seed_actions(seed)
        observations, infos = self._guarded.reset(seed=seed, options=options)
        self.agents = self._guarded.agents
        return self._shown(observations), self._plain_infos(infos)

    def step(self, actions: Mapping[str, Any]) -> Any:
        empty = "" if self.kind == "text" else np.zeros(0, dtype=np.int64)
        given = {
            agent: _fitting(actions.get(agent, empty), self.env.action_space(agent))
            for agent in self.env.agents
        }
        observations, rewards, terminations, truncations, infos = self._guarded.step(given)
        self.agents = self._guarded.agents
        return (
            self._shown(observations),
            rewards,
            terminations,
            truncations,
            self._plain_infos(infos),
        )

    def _plain_infos(self, infos: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Select the infos that can be logged; objects are dropped."""
        plain = {
            agent: {key: value for key, value in info.items() if not why_not_plain({key: value})}
            for agent, info in infos.items()
        }
        if self.kind == "tokens":
            for agent, info in infos.items():
                for name in CONTEXTS & info.keys():
                    plain[agent][name] = np.asarray(info[name], np.int64)
        return plain

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped

    def state(self) -> Any:
        return self._guarded.state()

    def render(self) -> Any:
        return self._guarded.render()

    def close(self) -> None:
        self._guarded.close()

    def _shown(self, observations: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        shown: dict[str, dict[str, Any]] = {}
        for agent, observation in observations.items():
            content = self._content(agent, observation)
            waits = self._in_turns and self.env.aec_env.agent_selection != agent
            reads = agent in self.agents and not waits
            if self.kind == "text" and not reads:
                # The agent gets its observation at its turn.
                content = ""
            active = reads and (self._in_turns or _says_active(observation))
            shown[agent] = {self.kind: content, "active": int(active)}
        return shown

    def _content(self, agent: str, observation: Any) -> Any:
        if isinstance(observation, Mapping):
            for key in (self.kind, "observation"):
                if key in observation:
                    return self._content(agent, observation[key])
        if self.kind == "text" and isinstance(observation, str):
            return observation
        if self.kind == "tokens" and not isinstance(observation, str | Mapping):
            ids = _array(observation)
            if ids.dtype.kind in "iu" or not ids.size:
                return ids.reshape(-1).astype(np.int64)
        raise UserError(
            f"{title_of(self.env)}: {agent} observes a {type(observation).__name__}; with "
            f"{self.kind} actions it needs {self.kind}, bare or under the key {self.kind!r} or "
            "'observation'."
        )


def _kind_of_actions(env: ParallelEnv[str, Any, Any], name: str) -> Kind:
    """The kind of all agents' actions; ``name``: see :func:`adapt`.

    Raises:
        UserError: actions are neither text nor tokens, or agents differ.
    """
    kinds = {
        agent: action_kind(space_of(env, "action_space", agent)) for agent in env.possible_agents
    }
    for agent, kind in kinds.items():
        if kind is None:
            integers = all(is_of_integers(env.action_space(other)) for other in kinds)
            way_out = f" --env discrete:{name} asks for them in text." if integers else ""
            raise UserError(
                f"{title_of(env)}: the actions of {agent} are {env.action_space(agent)}; an "
                "environment for language models needs text, or token arrays of any length "
                f"(gymnasium's Sequence(Discrete(V)) or coterie.envs.spaces.TokenSpace).{way_out}"
            )
    if len(set(kinds.values())) != 1:
        raise UserError(f"{title_of(env)}: some agents speak text and others tokens; choose one.")
    return "text" if "text" in kinds.values() else "tokens"


def _says_active(observation: Any) -> bool:
    return bool(observation.get("active", True)) if isinstance(observation, Mapping) else True


def plain_of(env: Any) -> ParallelEnv[str, Any, Any] | None:
    """Return the environment that :func:`adapt` made ``env`` of; None if it did not."""
    while env is not None and not isinstance(env, _Adapted):
        env = getattr(env, "env", None)
    return None if env is None else env.env


def _check_vocabularies(env: "_Adapted", codecs: Mapping[str, TokenCodec]) -> None:
    for agent in env.possible_agents:
        codec, space = codecs.get(role_of(agent)), env.action_space(agent)
        if codec is not None and codec.vocab_size != _vocabulary(space):
            raise UserError(
                f"{title_of(env.env)}: {agent} speaks {_vocabulary(space)} token ids and its model "
                f"{codec.vocab_size}; choose a model with the environment's vocabulary."
            )


def _vocabulary(space: Space[Any]) -> int | None:
    if isinstance(space, spaces.Sequence) and isinstance(space.feature_space, spaces.Discrete):
        return int(space.feature_space.n) if space.feature_space.start == 0 else None
    return getattr(space, "vocab_size", None)


def _fitting(action: Any, space: Space[Any]) -> Any:
    if action_kind(space) == "text":
        return action if isinstance(action, str) else ""
    # Gymnasium's Sequence wants a tuple.
    if isinstance(space, spaces.Sequence) and not space.contains(action):
        return tuple(np.asarray(action).reshape(-1).tolist())
    return action


def _array(value: Any) -> Any:
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        # Ragged lists and tensors of another device are no ids.
        return np.full(1, np.nan)
