"""What environments about one problem have in common: spaces, seeds, services, a render mode."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from envs.bytes_codec import BytesCodec, TextMeter
from envs.spaced_env import SpacedEnv
from envs.spaces import TextSpace
from problems.source import ProblemSource
from vocabulary import Problem, Scorer, UserError, derive_seed


class ProblemEnv(SpacedEnv):
    """Base of text environments in which every episode is about one problem.

    A subclass sets ``metadata`` and ``title``, and writes ``reset``, ``step``, which ends with
    :meth:`stepped`, and ``transcript``.
    """

    metadata: dict[str, Any]
    title: str
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
            from rewards.grading.scorer import AnswerScorer

            self._scorer = AnswerScorer()
        return self._scorer

    @property
    def source(self) -> ProblemSource:
        """The injected source, or generated chains."""
        if self._source is None:
            from problems.chains import ChainSource

            self._source = ChainSource()
        return self._source

    def seeded(self, seed: int | None) -> int:
        """The seed of the episode that a reset begins; a given one seeds the spaces too."""
        if seed is None:
            self._unseeded_resets += 1
            return derive_seed(self.title, "reset", self._base_seed, self._unseeded_resets)
        self._base_seed, self._unseeded_resets = seed, 0
        self._seed_actions(seed)
        return seed

    def problem_of(self, seed: int, options: Mapping[str, Any]) -> Problem:
        """The problem that the options name, or one of the source's by the seed."""
        problem = options.get("problem")
        if problem is None:
            drawn = derive_seed(self.title, "problem", seed)
            return self.source[drawn % (self.source.size or 2**31)]
        if not isinstance(problem, Problem):
            raise UserError(
                f"{self.title}: options['problem'] is a {type(problem).__name__}; "
                "give a vocabulary.Problem."
            )
        return problem

    def asked(
        self, prompts: Mapping[str, str], *, limit: int, stop: Sequence[str], piece: str = "message"
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Observations and infos in which each of these agents is handed its prompt.

        Args:
            prompts: agent -> prompt; nobody else is asked anything.
            limit: most tokens of an answer.
            stop: strings that end one.
            piece: what the prompts are to their readers' contexts.
        """
        observations = {
            agent: {"text": prompts.get(agent, ""), "active": int(agent in prompts)}
            for agent in self.agents
        }
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        for agent in prompts:
            infos[agent] = {"piece": piece, "max_new_tokens": limit, "stop": list(stop)}
        return observations, infos

    def stepped(
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


def private(data: Any) -> Any:
    """A copy of plain data that shares nothing with the original."""
    # copy.deepcopy costs more than all the scoring of a small episode.
    if isinstance(data, dict):
        return {key: private(value) for key, value in data.items()}
    return [private(value) for value in data] if isinstance(data, list) else data
