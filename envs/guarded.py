"""Tests a third party's environment against the contract while it is played.

A violation ends the run with one sentence; everything else passes unchanged.
"""

from collections.abc import Collection, Mapping
from typing import Any

from gymnasium import Space
from pettingzoo import ParallelEnv

from coterie.datatypes import ScoreRequests, UserError, raised
from coterie.envs.contract import (
    python_info,
    why_no_agents,
    why_no_metadata,
    why_no_result,
    why_no_reward,
    why_no_text,
    why_no_truth,
    why_not_left,
    why_not_paid,
)

_CHECK = "fix it, then run coterie check"


class Guarded(ParallelEnv[str, Any, Any]):
    """Wraps an environment; every error in it becomes a ``UserError``."""

    def __init__(
        self, env: ParallelEnv[str, Any, Any], *, text: bool = False, tokens: bool = False
    ) -> None:
        """Wrap ``env``.

        Args:
            env: a ``ParallelEnv``.
            text: whether its observations are ``Dict(text, active)`` already.
            tokens: whether its agents read ids.

        Raises:
            UserError: its metadata break the contract.
        """
        self.env = env
        self.title = title_of(env)
        check_metadata(env)
        self.metadata = dict(getattr(env, "metadata", {}))
        self.render_mode = getattr(env, "render_mode", None)
        self.possible_agents = list(env.possible_agents)
        self.agents: list[str] = []
        self._text, self._tokens = text, tokens
        self._paid: dict[str, float] = {}
        """Agent -> sum of its rewards in this episode."""

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped

    def observation_space(self, agent: str) -> Space[Any]:
        return self.env.observation_space(agent)

    def action_space(self, agent: str) -> Space[Any]:
        return self.env.action_space(agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._paid = {}
        result = self._call("reset", seed=seed, options=options)
        self._hold(why_no_result("reset", result))
        observations, infos = result
        self._see(observations, "reset")
        return observations, self._infos(self.agents, observations, infos)

    def step(self, actions: Mapping[str, Any]) -> Any:
        result = self._call("step", actions)
        self._hold(why_no_result("step", result))
        observations, rewards, terminations, truncations, infos = result
        living = self.agents
        self._see(observations, "step")
        for agent, reward in rewards.items():
            if why := why_no_reward(agent, reward):
                raise UserError(f"{self.title}: {why}.")
        paid = {agent: float(reward) for agent, reward in rewards.items()}
        ended = self._truths("terminations", terminations)
        cut = self._truths("truncations", truncations)
        check_ends(self.env, ended, cut)
        infos = self._infos(living, observations, infos)
        self._pay(paid, {agent for agent in paid if ended.get(agent) or cut.get(agent)}, infos)
        return observations, paid, ended, cut, infos

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """Return the scores that ``step(actions)`` will request."""
        if not hasattr(self.env, "score_requests"):
            return ScoreRequests()
        return self._call("score_requests", actions)

    def render(self) -> Any:
        return self._call("render")

    def state(self) -> Any:
        return self._call("state")

    def close(self) -> None:
        self._call("close")

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return call(self.env, method, *args, **kwargs)

    def _see(self, observations: Mapping[str, Any], method: str) -> None:
        """Copy the live agents; refuse a live agent without an observation."""
        living = self.env.agents
        self._hold(why_no_agents(method, living, self.possible_agents, observations))
        self.agents = list(living)
        for agent, observation in observations.items() if self._text else ():
            self._hold(why_no_text(agent, observation))

    def _pay(
        self, paid: Mapping[str, float], over: Collection[str], infos: Mapping[str, Mapping]
    ) -> None:
        """Add up rewards; at an agent's end its ``reward_terms`` must sum to them."""
        for agent, reward in paid.items():
            self._paid[agent] = self._paid.get(agent, 0.0) + reward
            terms = infos.get(agent, {}).get("reward_terms")
            if agent in over and terms:
                self._hold(why_not_paid(agent, terms, self._paid[agent]))

    def _truths(self, name: str, ends: Mapping[str, Any]) -> dict[str, bool]:
        return {agent: self._truth(f"{name}[{agent!r}]", end) for agent, end in ends.items()}

    def _truth(self, what: str, value: Any) -> bool:
        self._hold(why_no_truth(what, value))
        return bool(value)

    def _infos(
        self, living: list[str], observations: Mapping[str, Any], infos: Mapping[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Test the infos of agents that lived or observe, and convert NumPy numbers that the
        contract names to Python's."""
        checked: dict[str, dict[str, Any]] = {}
        # An agent may end without a last observation.
        for agent in dict.fromkeys([*living, *observations]):
            observation, info = observations.get(agent), infos.get(agent)
            active = agent in observations
            if isinstance(observation, Mapping) and "active" in observation:
                active = self._truth(f"'active' of {agent}", observation["active"])
            if info is None:
                info = {}
            if not isinstance(info, Mapping):
                self._hold(f"the info of {agent} is {info!r:.100}: it must be a dictionary")
            checked[agent], why = python_info(agent, info, active=active, tokens=self._tokens)
            self._hold(why)
        return checked

    def _hold(self, why: str) -> None:
        if why:
            raise UserError(f"{self.title}: {why}; {_CHECK}.")


def call(env: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """Call ``env.method(...)``.

    Raises:
        UserError: the method raised an exception.
    """
    try:
        return getattr(env, method)(*args, **kwargs)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{title_of(env)}: {method}() {raised(error)}; coterie check says where."
        ) from error


def check_metadata(env: Any) -> None:
    """Raise a ``UserError`` if the metadata break the contract."""
    if why := why_no_metadata(getattr(env, "metadata", {})):
        raise UserError(f"{title_of(env)}: {why}; {_CHECK}.")


def check_ends(env: Any, *ends: Any) -> None:
    """Raise a ``UserError`` if an agent lives on after its end; ``ends``: see
    :func:`coterie.envs.contract.why_not_left`."""
    # In AEC environments an agent that ended stays until its turn.
    if not hasattr(env, "aec_env") and (why := why_not_left(env.agents, *ends)):
        raise UserError(f"{title_of(env)}: {why}; {_CHECK}.")


def title_of(env: Any) -> str:
    """Return the name of an environment or else of its class, for messages."""
    return getattr(env.unwrapped, "title", "") or type(env.unwrapped).__name__
