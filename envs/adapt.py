"""Any PettingZoo environment with text or token actions, as one of ours.

Such an environment imports nothing from here. What its infos do not say has the defaults of the
contract: everyone listed is active, the reward is one term, replicas of one seed form a group per
role.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import Space, spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import (
    aec_to_parallel,
    turn_based_aec_to_parallel,
    turn_based_aec_to_parallel_wrapper,
)

from coterie.datatypes import TokenCodec, UserError
from coterie.envs.contract import CONTEXTS, role_of, why_not_plain
from coterie.envs.guarded import Guarded, check_metadata, describe
from coterie.envs.guarded import title_of as _name
from coterie.envs.spaces import Seen, SpacedEnv, TextSpace, TokenSpace
from coterie.envs.token_view import TokenView

Kind = Literal["text", "tokens"]


def is_text_env(env: Any) -> bool:
    """Whether ``env`` keeps the text contract by itself: ``Dict(text, active)``, string actions."""
    if not isinstance(env, ParallelEnv) or not env.possible_agents:
        return False
    agent = env.possible_agents[0]
    space = space_of(env, "observation_space", agent)
    named = isinstance(space, spaces.Dict) and {"text", "active"} <= set(space.keys())
    return named and action_kind(space_of(env, "action_space", agent)) == "text"


def space_of(env: Any, which: str, agent: str) -> Space[Any]:
    """The space of one agent.

    Args:
        env: anything of PettingZoo's.
        which: ``observation_space`` or ``action_space``.
        agent: whose.

    Raises:
        UserError: the environment has none.
    """
    try:
        with warnings.catch_warnings():
            # PettingZoo's base class warns before it fails.
            warnings.simplefilter("ignore")
            space = getattr(env, which)(agent)
    except Exception as error:
        raise UserError(
            f"{_name(env)}: {which}({agent!r}) raised {describe(error)}; it must "
            "give the same gymnasium space at every call."
        ) from error
    if not isinstance(space, Space):
        raise UserError(
            f"{_name(env)}: {which}({agent!r}) is a {type(space).__name__}, not a gymnasium space."
        )
    return space


def action_kind(space: Space[Any]) -> Kind | None:
    """What an action space is made of: strings, arrays of ids of any length, or neither."""
    if isinstance(space, TextSpace | spaces.Text):
        return "text"
    if _vocabulary(space) is not None:
        return "tokens"
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.Discrete | spaces.MultiBinary):
        return None
    return "text" if isinstance(space.sample(), str) else None


def is_of_integers(space: Space[Any]) -> bool:
    """Whether an action is one integer, or a fixed number of them."""
    whole = isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind in "iu"
    return whole or isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)


def adapt(
    env: Any,
    codecs: Mapping[str, TokenCodec] | None = None,
    *,
    view: Literal["token", "text"] = "token",
    name: str = "NAME",
) -> ParallelEnv[str, dict[str, Any], Any]:
    """View a plain ``ParallelEnv`` or ``AECEnv`` through the environment contract.

    Text environments: each observation (a string, or one under the key ``text`` or ``observation``)
    is a new message to its agent. Token environments: the observation (an array of ids, or one
    under ``tokens`` or ``observation``) is all that the agent sees; it may forget what it saw
    before. An AEC environment goes through PettingZoo's own conversions: cyclic ones
    (``is_parallelizable``) act together; in all others one agent at a time is active. An agent that
    failed to answer gives an empty answer.

    Args:
        env: anything of PettingZoo's with text or token actions.
        codecs: role -> codec; a token environment must have their vocabularies.
        view: ``text`` leaves a text environment in strings.
        name: what ``--env`` calls it, for messages.

    Raises:
        UserError: another kind of environment, actions or observations.
    """
    if isinstance(env, AECEnv):
        check_metadata(env)
        cyclic = env.metadata.get("is_parallelizable", False)
        with warnings.catch_warnings():
            # An environment that nobody renders needs no render_mode.
            warnings.filterwarnings("ignore", message=".*render_mode")
            env = aec_to_parallel(env) if cyclic else turn_based_aec_to_parallel(env)
    if not isinstance(env, ParallelEnv):
        raise UserError(f"{type(env).__name__} is neither a PettingZoo ParallelEnv nor an AECEnv.")
    adapted = _Adapted(env, name)
    if adapted.kind == "tokens":
        _check_vocabularies(adapted, codecs or {})
        if view == "text":
            raise UserError(f"{_name(env)} speaks in token ids; it has no text view.")
        return adapted
    return TokenView(adapted, codecs) if view == "token" else adapted


class _Adapted(SpacedEnv):
    """``Dict(text, active)`` or ``Dict(tokens, active)`` over a plain environment."""

    def __init__(self, env: ParallelEnv[str, Any, Any], name: str) -> None:
        self.env = env
        self.render_mode = getattr(env, "render_mode", None)
        self.possible_agents = list(env.possible_agents)
        self.agents: list[str] = []
        kinds = {
            agent: action_kind(space_of(env, "action_space", agent))
            for agent in self.possible_agents
        }
        for agent, kind in kinds.items():
            if kind is None:
                integers = all(
                    is_of_integers(env.action_space(other)) for other in self.possible_agents
                )
                way_out = f" --env discrete:{name} asks for them in text."
                raise UserError(
                    f"{_name(env)}: the actions of {agent} are {env.action_space(agent)}; an "
                    "environment for language models needs text, or token arrays of any length "
                    "(gymnasium's Sequence(Discrete(V)) or coterie.envs.spaces.TokenSpace)."
                    f"{way_out if integers else ''}"
                )
        if len(set(kinds.values())) != 1:
            raise UserError(f"{_name(env)}: some agents speak text and others tokens; choose one.")
        self.kind: Kind = "text" if "text" in kinds.values() else "tokens"
        self._guarded = Guarded(env, tokens=self.kind == "tokens")
        self.metadata = {"group_keys": ("problem+role",), "default_group": "problem+role"}
        self.metadata |= self._guarded.metadata
        self.append_only = self.kind == "text"
        self.outside: str | None = None
        """A sentence about the first observation outside its own space; empty while there is
        none, and None unless :func:`watch_spaces` watches."""
        self._tame = True
        """Whether all actions of this episode were in their author's own spaces: what others
        write comes back in observations."""
        self._observation_spaces = {}
        self._action_spaces = {}
        for agent in self.possible_agents:
            content: Space[Any] = TextSpace()
            if self.kind == "tokens":
                content = TokenSpace(_vocabulary(env.action_space(agent)) or 1)
            shown = {self.kind: content, "active": spaces.Discrete(2)}
            self._observation_spaces[agent] = spaces.Dict(shown)
            self._action_spaces[agent] = type(content)(**_size(content))

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Seen:
        if seed is not None:
            self.seed_actions(seed)
        self._tame = True
        observations, infos = self._guarded.reset(seed=seed, options=options)
        self.agents = self._guarded.agents
        return self._shown(observations), self._plain_infos(infos)

    def step(self, actions: Mapping[str, Any]) -> Any:
        empty = "" if self.kind == "text" else np.zeros(0, dtype=np.int64)
        given = {
            agent: _fitting(actions.get(agent, empty), self.env.action_space(agent))
            for agent in self.env.agents
        }
        if self.outside == "":
            self._tame &= all(
                _holds(self.env.action_space(agent), action) for agent, action in given.items()
            )
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
        """What of the infos can be logged; objects are for the environment's own users."""
        plain = {
            agent: {key: value for key, value in info.items() if not why_not_plain({key: value})}
            for agent, info in infos.items()
        }
        if self.kind == "tokens":
            for agent, info in infos.items():
                for name in CONTEXTS & info.keys():
                    plain[agent][name] = np.asarray(info[name], np.int64)
        return plain

    def render(self) -> Any:
        return self._guarded.render()

    def close(self) -> None:
        self._guarded.close()

    def _shown(self, observations: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        shown: dict[str, dict[str, Any]] = {}
        for agent, observation in observations.items():
            if (
                self.outside == ""
                and self._tame
                and not _holds(self.env.observation_space(agent), observation)
            ):
                space = " ".join(str(self.env.observation_space(agent)).split())
                self.outside = (
                    f"{agent} observes {observation!r:.100}, which is not in its observation space "
                    f"{space:.100}"
                )
            active = int(agent in self.agents and self._turn_of(agent, observation))
            content = self._content(agent, observation)
            if self.kind == "text" and not active:
                # It is handed on when the agent is asked.
                content = ""
            shown[agent] = {self.kind: content, "active": active}
        return shown

    def _turn_of(self, agent: str, observation: Any) -> bool:
        if isinstance(self.env, turn_based_aec_to_parallel_wrapper):
            return self.env.aec_env.agent_selection == agent
        return bool(observation.get("active", True)) if isinstance(observation, Mapping) else True

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
            f"{_name(self.env)}: {agent} observes a {type(observation).__name__}; with {self.kind} "
            f"actions it needs {self.kind}, bare or under the key {self.kind!r} or 'observation'."
        )


def _holds(space: Space[Any], observation: Any) -> bool:
    try:
        return bool(space.contains(observation))
    except Exception:
        return False


def watch_spaces(env: Any) -> Callable[[], str]:
    """Look from now on whether an environment from elsewhere shows what its own spaces hold; the
    function gives what it did not, in a sentence, and nothing so far otherwise."""
    while env is not None and not isinstance(env, _Adapted):
        env = getattr(env, "env", None)
    if env is None:
        return lambda: ""
    env.outside = ""
    return lambda: env.outside or ""


def _check_vocabularies(env: "_Adapted", codecs: Mapping[str, TokenCodec]) -> None:
    for agent in env.possible_agents:
        codec, space = codecs.get(role_of(agent)), env.action_space(agent)
        if codec is not None and codec.vocab_size != _vocabulary(space):
            raise UserError(
                f"{_name(env.env)}: {agent} speaks {_vocabulary(space)} token ids and its model "
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
        # Lists of several lengths, a tensor of another device: no ids.
        return np.full(1, np.nan)


def _size(space: Space[Any]) -> dict[str, int]:
    return {"vocab_size": space.vocab_size} if isinstance(space, TokenSpace) else {}
