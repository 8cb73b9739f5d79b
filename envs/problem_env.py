"""Base class of environments about one problem: spaces, seeds, services, rendering."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces

from coterie.datatypes import Problem, Scorer, UserError, derive_seed
from coterie.envs.bytes_codec import BytesCodec, TextMeter
from coterie.envs.spaces import SpacedEnv, TextSpace
from coterie.problems.source import ProblemSource

N = TypeVar("N", int, float)

_LEAVES = {str, int, float, bool, type(None)}


def metadata_of(name: str, *group_keys: str, default_group: str = "") -> dict[str, Any]:
    """Return metadata of an environment about one problem.

    Args:
        name: PettingZoo's name, with a version.
        group_keys: keys of the groups within which rewards can be compared.
        default_group: one of the keys; empty: the first.
    """
    keys = {"group_keys": group_keys, "default_group": default_group or group_keys[0]}
    return {**ProblemEnv.metadata, "name": name, **keys}


class ProblemEnv(SpacedEnv):
    """Base of text environments in which every episode is about one problem.

    A subclass sets ``metadata`` (extending that of this class) and ``title``, and writes ``reset``,
    ``transcript``, and ``step``, which returns :meth:`step_result`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
    }
    title: str = ""
    """The registered name, for error messages."""

    def __init__(
        self,
        agents: Sequence[str],
        roles: Sequence[str],
        *,
        scorer: Scorer | None,
        source: ProblemSource | None,
        tokenizers: Mapping[str, TextMeter] | None,
        render_mode: str | None,
    ) -> None:
        """Args:
            agents: all agents.
            roles: different names.
            scorer: checks answers; None: a new ``AnswerScorer``.
            source: problems for episodes whose options name none; None: generated chains.
            tokenizers: role -> meter of its tokens; roles without one count bytes.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: repeated roles, or an unknown render mode.
        """
        if len(set(roles)) != len(roles) or not all(roles):
            raise UserError(f"{self.title}: roles {list(roles)} must be names that all differ.")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UserError(
                f"{self.title}: render mode {render_mode!r} is unknown; choose human or ansi."
            )
        self.roles = tuple(roles)
        self.render_mode = render_mode
        self.possible_agents = list(agents)
        self.agents: list[str] = []
        self.meters = {role: (tokenizers or {}).get(role, BytesCodec()) for role in roles}
        self._scorer = scorer
        self._source = source
        self._observation_spaces = {
            agent: spaces.Dict({"text": TextSpace(), "active": spaces.Discrete(2)})
            for agent in agents
        }
        self._action_spaces = {agent: TextSpace() for agent in agents}
        self._base_seed = int(np.random.default_rng().integers(2**62))
        self._unseeded_resets = 0

    @property
    def scorer(self) -> Scorer:
        """The given scorer, or a new one on first use."""
        if self._scorer is None:
            from coterie.rewards.grading.scorer import AnswerScorer

            self._scorer = AnswerScorer()
        return self._scorer

    @property
    def source(self) -> ProblemSource:
        """The given source, or generated chains."""
        if self._source is None:
            from coterie.problems.chains import ChainSource

            self._source = ChainSource()
        return self._source

    def next_seed(self, seed: int | None) -> int:
        """Return the seed of the next episode; a given ``seed`` also seeds the spaces."""
        if seed is None:
            self._unseeded_resets += 1
            return derive_seed(self.title, "reset", self._base_seed, self._unseeded_resets)
        self._base_seed, self._unseeded_resets = seed, 0
        self.seed_actions(seed)
        return seed

    def problem_of(self, seed: int, options: Mapping[str, Any]) -> Problem:
        """Return the problem in the options, or one of the source's by the seed.

        Raises:
            UserError: the option is not a ``Problem``.
        """
        problem = options.get("problem")
        if problem is None:
            drawn = derive_seed(self.title, "problem", seed)
            return self.source[drawn % (self.source.size or 2**31)]
        if not isinstance(problem, Problem):
            raise UserError(
                f"{self.title}: options['problem'] is a {type(problem).__name__}; "
                "give a coterie.datatypes.Problem."
            )
        return problem

    def number_of(self, options: Mapping[str, Any], name: str, usual: N) -> N:
        """Return the number ``name`` in the options, of the type of ``usual``, its default.

        Raises:
            UserError: the option is no such number.
        """
        value = options.get(name, usual)
        try:
            return type(usual)(value)
        except (TypeError, ValueError, OverflowError):
            kind = "whole number" if isinstance(usual, int) else "number"
            raise UserError(
                f"{self.title}: options[{name!r}] is {value!r}; give a {kind}."
            ) from None

    def step_result(
        self,
        observations: dict[str, dict[str, Any]],
        infos: dict[str, dict[str, Any]],
        *,
        done: bool,
        truncated: Collection[str] = (),
    ) -> Any:
        """Return the result of ``step``.

        Args:
            observations: by agent.
            infos: by agent; rewards are the sums of their reward terms.
            done: whether the episode ends for all agents.
            truncated: agents that end by truncation.
        """
        rewards = {agent: reward_of(info) for agent, info in infos.items()}
        terminations = {agent: done and agent not in truncated for agent in self.agents}
        truncations = {agent: done and agent in truncated for agent in self.agents}
        if done:
            self.agents = []
            if self.render_mode == "human":
                self.render()
        return observations, rewards, terminations, truncations, infos

    def transcript(self) -> str | None:
        """Return the episode so far, for a human reader; None before the first reset."""
        raise NotImplementedError

    def render(self) -> Any:
        """Print (``human``) or return (``ansi``) the transcript so far."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs a render mode: make the environment with one.")
            return None
        text = self.transcript()
        if self.render_mode == "ansi" or text is None:
            return text
        print(text)
        return None

    def close(self) -> None:
        self.agents = []


def reward_of(info: Mapping[str, Any]) -> float:
    """Return the sum of the info's reward terms; 0 without terms."""
    return sum(info.get("reward_terms", {}).values(), 0.0)


def text_of(action: Any) -> str:
    """Return the action, or "" for an action that is no string."""
    return action if isinstance(action, str) else ""


def copy_plain(data: Any) -> Any:
    """Return a deep copy of plain data, with NumPy's numbers as Python's."""
    # copy.deepcopy takes longer than scoring a small episode; leaves are not even passed on.
    if isinstance(data, dict):
        return {k: v if type(v) in _LEAVES else copy_plain(v) for k, v in data.items()}
    if isinstance(data, list):
        return [v if type(v) in _LEAVES else copy_plain(v) for v in data]
    return data.item() if isinstance(data, np.generic) else data
