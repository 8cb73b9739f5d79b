"""Environments told as one straight conversation: whom to ask what, and what everyone earned."""

from abc import abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from envs.bytes_codec import TextMeter
from envs.contract import bare, why_not_kept
from envs.guarded import told
from envs.problem_env import ProblemEnv, private, reward_of, text_of
from envs.roles import role_of
from problems.source import ProblemSource
from vocabulary import Problem, Scorer, ScoreRequests, UserError, derive_seed


class Fresh(str):
    """A message with which its reader's context begins anew; all others continue it."""


Asked = Mapping[str, str]
"""Agent -> the message it is to answer now; all of them are asked at once."""
Answers = Mapping[str, str]
"""Agent -> its answer. Whoever failed to answer is not in it."""

GROUP_KEYS = ("problem+role", "problem")


@dataclass(frozen=True)
class Outcome:
    """What a conversation ends with; an agent that a mapping leaves out has nothing there."""

    terms: Mapping[str, Mapping[str, float]]
    """Agent -> reward term -> its weighted value. An agent's reward is their sum."""
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Agent -> what else is to be logged of it; numbers and booleans are averaged by role."""
    episode: Mapping[str, Any] = field(default_factory=dict)
    """Measurements of the whole episode."""


Conversation = Generator[Asked, Answers, Outcome]
"""Yields whom it asks what, is sent their answers, and returns the outcome."""


class ConversationEnv(ProblemEnv):
    """Base of text environments with one agent per role, written as one generator.

    A subclass sets the attributes below, ``metadata`` (this class's own with a name and, if need
    be, other ``replicas``) and ``title``, and writes :meth:`conversation`. See ``examples/debate``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
        "group_keys": GROUP_KEYS,
        "default_group": "problem+role",
        # Episodes of one problem that are compared with each other.
        "replicas": 8,
    }
    settings_class: type
    """Frozen dataclass with at least ``max_new_tokens``, each field a flag ``--env.FIELD``."""
    default_roles: tuple[str, ...]
    """Who takes part when nobody is named; as many as must be at least."""
    more_roles: bool = False
    """Whether more may take part than that."""

    def __init__(
        self,
        settings: Any = None,
        *,
        roles: Sequence[str] | None = None,
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TextMeter] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Set up an environment in which any number of episodes can be played.

        Args:
            settings: an instance of ``settings_class``; its defaults without one.
            roles: names; ``default_roles`` without any.
            scorer: checks answers; an ``AnswerScorer`` of its own without one.
            source: problems for episodes whose options name none; generated chains without one.
            tokenizers: role -> the meter of its tokens; bytes without one.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: too few or too many roles, the same one twice, or an unknown render mode.
        """
        roles = self.default_roles if roles is None else roles
        needed = len(self.default_roles)
        if len(roles) < needed or (len(roles) > needed and not self.more_roles):
            raise UserError(
                f"{self.title}: {len(roles)} roles; name {'at least ' * self.more_roles}{needed}, "
                f"such as {' '.join(self.default_roles)}."
            )
        super().__init__(
            [f"{role}_0" for role in roles],
            roles,
            scorer=scorer,
            source=source,
            tokenizers=tokenizers,
            render_mode=render_mode,
        )
        self.settings = self.settings_class() if settings is None else settings
        self._problem: Problem | None = None
        self._telling: Conversation | None = None
        self._asked: dict[str, str] = {}
        self._failed: dict[str, bool] = {}
        self._lines: list[str] = []

    @abstractmethod
    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        """One episode, from the first question to what everyone earned.

        Args:
            problem: what it is about; ``self.scorer.check(text, problem).correct`` grades a text.
            options: the reset's: ``mode`` (``train``, ``eval``), ``step``, ``epoch``.
            random: the only source of chance, so that a seed gives the same episode again.
        """

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: draws the problem (if none is given) and all that is random in the conversation.
            options: ``problem``, and whatever the conversation reads.
        """
        seed = self.seeded(seed)
        self._problem = self.problem_of(seed, options or {})
        random = np.random.default_rng(derive_seed(self.title, "random", seed))
        self._lines = [f"{self._problem.id}: {self._problem.question}", ""]
        self._failed = {}
        self.agents = list(self.possible_agents)
        self._telling = self.conversation(self._problem, options or {}, random)
        if not isinstance(self._telling, Generator):
            self._refuse("is no generator: ask with `answers = yield {agent: message}`")
        self._tell(None)
        return self._shown()

    def step(self, actions: Mapping[str, Any]) -> Any:
        if self._telling is None or not self.agents:
            return {}, {}, {}, {}, {}
        answers = {agent: text_of(actions[agent]) for agent in self._asked if agent in actions}
        for agent, message in self._asked.items():
            self._failed[agent] = self._failed.get(agent, False) or agent not in answers
            told = answers.get(agent, "(no answer)")
            self._lines += [f"== {agent} ==", message, "--", told, ""]
        outcome = self._tell(answers)
        observations, infos = self._shown()
        if outcome is not None:
            infos = self._last_infos(outcome)
            self._lines += [f"{who}: reward {reward_of(info):+.3f}" for who, info in infos.items()]
        return self.stepped(observations, infos, done=outcome is not None)

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """Whatever is answered may be graded: have it graded in one batch with other episodes."""
        if self._problem is None:
            return ScoreRequests()
        texts = (text_of(actions[agent]) for agent in self._asked if agent in actions)
        return ScoreRequests(tuple((text, self._problem) for text in texts))

    def transcript(self) -> str | None:
        return "\n".join(self._lines) or None

    def _tell(self, answers: Answers | None) -> Outcome | None:
        """Go on to the next questions, or to what came of it all."""
        assert self._telling is not None
        try:
            asked = self._telling.send(answers)  # pyright: ignore[reportArgumentType]
        except StopIteration as end:
            if answers is None:
                self._refuse("ended before it asked anybody anything")
            self._asked = {}
            return self._proper(end.value)
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"{self.title}: conversation() raised {told(error)}; python -m envs.check says "
                "where."
            ) from error
        self._ask(asked)
        return None

    def _ask(self, asked: Asked) -> None:
        if (
            not isinstance(asked, Mapping)
            or not asked
            or not set(self.possible_agents).issuperset(asked)
            or not all(isinstance(message, str) and message for message in asked.values())
        ):
            shown = dict(asked) if isinstance(asked, Mapping) else asked
            self._refuse(
                f"asked {shown!r:.200}; it must give at least one of "
                f"{', '.join(self.possible_agents)} a message"
            )
        self._asked = dict(asked)

    def _proper(self, outcome: Any) -> Outcome:
        if not isinstance(outcome, Outcome):
            self._refuse(
                f"ended with {outcome!r:.100}; let it return an Outcome, such as "
                f"Outcome({{{self.possible_agents[0]!r}: {{'correct': 1.0}}}})"
            )
        for name in ("terms", "measured"):
            by_agent = getattr(outcome, name)
            if (
                not isinstance(by_agent, Mapping)
                or not set(self.possible_agents).issuperset(by_agent)
                or not all(isinstance(values, Mapping) for values in by_agent.values())
            ):
                self._refuse(
                    f"ended with the {name} {by_agent!r:.200}; they must be a dictionary for each "
                    f"of {', '.join(self.possible_agents)}"
                )
        if not isinstance(outcome.episode, Mapping):
            self._refuse(
                f"ended with the episode {outcome.episode!r:.100}; it must be a dictionary"
            )
        for agent, terms in outcome.terms.items():
            if why := why_not_kept(agent, {"reward_terms": bare(dict(terms))}):
                self._refuse(f"ended, and {why}")
        return outcome

    def _refuse(self, sentence: str) -> NoReturn:
        raise UserError(f"{self.title}: conversation() {sentence}.")

    def _shown(self) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        observations: dict[str, dict[str, Any]] = {}
        infos: dict[str, dict[str, Any]] = {}
        for agent in self.agents:
            message = self._asked.get(agent, "")
            observations[agent] = {"text": message, "active": int(agent in self._asked)}
            infos[agent] = {}
            if message:
                piece = "fresh" if isinstance(message, Fresh) else "message"
                infos[agent] = {"piece": piece, "max_new_tokens": self.settings.max_new_tokens}
        return observations, infos

    def _last_infos(self, outcome: Outcome) -> dict[str, dict[str, Any]]:
        problem = self._problem.id if self._problem else ""
        return {
            agent: {
                "reward_terms": dict(outcome.terms.get(agent, {})),
                "groups": dict(zip(GROUP_KEYS, (f"{problem}/{role_of(agent)}", problem))),
                "episode": private({"problem": problem, **outcome.episode}),
                **({"failed": self._failed[agent]} if agent in self._failed else {}),
                **private(dict(outcome.measured.get(agent, {}))),
            }
            for agent in self.possible_agents
        }
