"""What environments about one problem have in common: spaces, seeds, services, a render mode."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from coterie.datatypes import Problem, Scorer, UserError, derive_seed
from coterie.envs.bytes_codec import BytesCodec, TextMeter
from coterie.envs.spaces import SpacedEnv, TextSpace
from coterie.problems.source import ProblemSource

_LEAVES = {str, int, float, bool, type(None)}


def metadata_of(name: str, *group_keys: str, default_group: str = "") -> dict[str, Any]:
    """Metadata of an environment about one problem.

    Args:
        name: PettingZoo's, with a version.
        group_keys: under which rows may be compared.
        default_group: one of them; empty: the first.
    """
    keys = {"group_keys": group_keys, "default_group": default_group or group_keys[0]}
    return {**ProblemEnv.metadata, "name": name, **keys}


class ProblemEnv(SpacedEnv):
    """Base of text environments in which every episode is about one problem.

    A subclass sets ``metadata`` (this class's own and more) and ``title``, and writes ``reset``,
    ``step``, which ends with :meth:`step_result`, and ``transcript``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
    }
    title: str = ""
    """Its registered name, with which its error messages begin."""

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
            agents: everyone who may ever be asked.
            roles: names that all differ.
            scorer: checks answers; an ``AnswerScorer`` of its own without one.
            source: problems for episodes whose options name none; generated chains without one.
            tokenizers: role -> the meter of its tokens; bytes without one.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: the same role twice, or an unknown render mode.
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
        """The injected scorer, or one of its own, built when first needed."""
        if self._scorer is None:
            from coterie.rewards.grading.scorer import AnswerScorer

            self._scorer = AnswerScorer()
        return self._scorer

    @property
    def source(self) -> ProblemSource:
        """The injected source, or generated chains."""
        if self._source is None:
            from coterie.problems.chains import ChainSource

            self._source = ChainSource()
        return self._source

    def next_seed(self, seed: int | None) -> int:
        """The seed of the episode that a reset begins; a given one seeds the spaces too."""
        if seed is None:
            self._unseeded_resets += 1
            return derive_seed(self.title, "reset", self._base_seed, self._unseeded_resets)
        self._base_seed, self._unseeded_resets = seed, 0
        self.seed_actions(seed)
        return seed

    def problem_of(self, seed: int, options: Mapping[str, Any]) -> Problem:
        """The problem that the options name, or one of the source's by the seed.

        Raises:
            UserError: the options name something else than a ``Problem``.
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

    def step_result(
        self,
        observations: dict[str, dict[str, Any]],
        infos: dict[str, dict[str, Any]],
        *,
        done: bool,
        truncated: Collection[str] = (),
    ) -> Any:
        """What ``step`` gives back; with ``done`` the episode ends for everyone.

        Args:
            observations: of everyone.
            infos: of everyone; their reward terms are what is paid.
            done: whether this was the last step.
            truncated: who was cut off by it.
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
        """The episode so far, for a human reader; None before the first reset."""
        raise NotImplementedError

    def render(self) -> Any:
        """The transcript so far: printed (``human``) or returned (``ansi``)."""
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
    """The sum over the very terms that the info shows; 0 before there are any."""
    return sum(info.get("reward_terms", {}).values(), 0.0)


def text_of(action: Any) -> str:
    """An action of another type is an empty answer."""
    return action if isinstance(action, str) else ""


def copy_plain(data: Any) -> Any:
    """A copy of plain data that shares nothing with the original."""
    # copy.deepcopy costs more than all the scoring of a small episode, and so do idle calls.
    if isinstance(data, dict):
        return {k: v if type(v) in _LEAVES else copy_plain(v) for k, v in data.items()}
    if isinstance(data, list):
        return [v if type(v) in _LEAVES else copy_plain(v) for v in data]
    return data
