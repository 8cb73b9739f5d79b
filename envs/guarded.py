"""An environment that somebody else wrote, held to the contract while it is played.

Whatever it does wrong ends in one sentence that names it; what it does right passes as it is.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from gymnasium import Space
from pettingzoo import ParallelEnv

from envs.contract import bare, is_named, why_no_metadata, why_not_kept
from vocabulary import ScoreRequests, UserError

_CHECK = "mend it, and run python -m envs.check"


class Guarded(ParallelEnv[str, Any, Any]):
    """The same environment; a call that goes wrong raises a ``UserError``."""

    def __init__(
        self, env: ParallelEnv[str, Any, Any], *, text: bool = False, tokens: bool = False
    ) -> None:
        """Wrap ``env``.

        Args:
            env: anything of PettingZoo's parallel kind.
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

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped

    def observation_space(self, agent: str) -> Space[Any]:
        return self.env.observation_space(agent)

    def action_space(self, agent: str) -> Space[Any]:
        return self.env.action_space(agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        parts = self._called("reset", seed=seed, options=options)
        observations, infos = self._parts("reset", parts, "observations, infos")
        self._see(observations, "reset")
        return observations, self._kept(observations, infos)

    def step(self, actions: Mapping[str, Any]) -> Any:
        observations, rewards, terminations, truncations, infos = self._parts(
            "step",
            self._called("step", actions),
            "observations, rewards, terminations, truncations, infos",
        )
        self._see(observations, "step")
        return (
            observations,
            {agent: self._finite(agent, reward) for agent, reward in rewards.items()},
            self._truths("terminations", terminations),
            self._truths("truncations", truncations),
            self._kept(observations, infos),
        )

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """What ``step(actions)`` will ask of the scorer."""
        if not hasattr(self.env, "score_requests"):
            return ScoreRequests()
        return self._called("score_requests", actions)

    def render(self) -> Any:
        return self._called("render")

    def state(self) -> Any:
        return self._called("state")

    def close(self) -> None:
        self._called("close")

    def _called(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """The answer of a method that somebody else wrote."""
        return called(self.env, method, *args, **kwargs)

    def _parts(self, method: str, result: Any, names: str) -> Any:
        expected = len(names.split(", "))
        if (
            not isinstance(result, tuple)
            or len(result) != expected
            or not all(isinstance(part, Mapping) for part in result)
        ):
            raise UserError(
                f"{self.title}: {method}() must give {expected} dictionaries by agent: {names}."
            )
        return result

    def _see(self, observations: Mapping[str, Any], method: str) -> None:
        """Who lives, and that everyone who does is shown something."""
        living = self.env.agents
        if not isinstance(living, Collection) or isinstance(living, str):
            self._refuse(f"after {method}() agents is {living!r:.100}: it must be a list of names")
        self.agents = list(living)
        for agent in (*self.agents, *observations):
            if agent not in self.possible_agents:
                self._refuse(f"after {method}() {agent!r} is there, who is not in possible_agents")
        for agent in self.agents:
            if agent not in observations:
                self._refuse(f"{method}() gives {agent}, which is in agents, no observation")
        for agent, shown in observations.items() if self._text else ():
            whole = isinstance(shown, Mapping) and "active" in shown
            if not whole or not isinstance(shown.get("text"), str):
                self._refuse(
                    f"{agent} observes {shown!r:.100}: it must be a dictionary of 'text', a "
                    "string, and 'active'"
                )

    def _finite(self, agent: str, reward: Any) -> float:
        try:
            number = math.nan if isinstance(reward, str | bytes) else float(reward)
        except Exception:
            # Arrays and tensors have a way to fail of their own.
            number = math.nan
        if not math.isfinite(number):
            raise UserError(
                f"{self.title}: the reward of {agent} is {reward!r:.100}, not a finite number."
            )
        return number

    def _truths(self, name: str, ends: Mapping[str, Any]) -> dict[str, bool]:
        return {agent: self._truth(f"{name}[{agent!r}]", end) for agent, end in ends.items()}

    def _truth(self, what: str, value: Any) -> bool:
        try:
            return bool(value)
        except Exception:
            self._refuse(f"{what} is {value!r:.100}: it must be True or False")

    def _kept(
        self, observations: Mapping[str, Any], infos: Mapping[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """The infos, with Python's numbers where the contract names a number."""
        kept: dict[str, dict[str, Any]] = {}
        for agent, observation in observations.items():
            asked, info = True, infos.get(agent)
            if isinstance(observation, Mapping) and "active" in observation:
                asked = self._truth(f"'active' of {agent}", observation["active"])
            if info is None:
                info = {}
            if not isinstance(info, Mapping):
                self._refuse(f"the info of {agent} is {info!r:.100}: it must be a dictionary")
            how = {"asked": asked, "tokens": self._tokens}
            if why_not_kept(agent, info, **how):
                # A number of NumPy's is what its author meant by it.
                info = {key: bare(item) if is_named(key) else item for key, item in info.items()}
                if why := why_not_kept(agent, info, **how):
                    self._refuse(why)
            kept[agent] = dict(info)
        return kept

    def _refuse(self, sentence: str) -> NoReturn:
        raise UserError(f"{self.title}: {sentence}; {_CHECK}.")


def called(env: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """The answer of ``env.method(...)``.

    Raises:
        UserError: what it raised, in a sentence.
    """
    try:
        return getattr(env, method)(*args, **kwargs)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{title_of(env)}: {method}() raised {told(error)}; python -m envs.check says where."
        ) from error


def check_metadata(env: Any) -> None:
    """Refuse metadata that break the contract.

    Raises:
        UserError: they do.
    """
    if why := why_no_metadata(getattr(env, "metadata", {})):
        raise UserError(f"{title_of(env)}: {why}; {_CHECK}.")


def told(error: BaseException) -> str:
    """An exception's kind and its message on one line."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def title_of(env: Any) -> str:
    """What messages about an environment begin with: its class."""
    return type(env.unwrapped).__name__
