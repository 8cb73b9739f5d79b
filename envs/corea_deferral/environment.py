r"""Deferral: a small model answers and says how sure it is; what it is not sure of, a large one
answers.

| | |
|---|---|
| Creation | ``envs.make("corea-deferral")``, ``pettingzoo.make("parallel", "corea-deferral-v0")`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``small_0 .. small_{N-1}``, ``large_0 .. large_{N-1}`` |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

Every agent is one trace about the episode's problem: reasoning, a ``\boxed{}`` answer and a
``\confidence{}``. Where trace i of the small role states less than the threshold, or nothing valid,
``large_i`` is asked; it sees the question, never the small role's attempt, and its own confidence
is ignored (COREA, arXiv:2603.03752, section 3).

Modes (``options["mode"]``): ``train``, in which each learner writes N traces at once and nothing is
deferred unless the settings ask for it; ``eval``, the cascade; ``responses``, in which both roles
answer every question, so that any threshold can be tried afterwards without sampling again.

Observation: the prompt, once, when the agent is asked; ``active`` says who is asked now.

Rewards are paid at the end. In training: correctness, format, and how close the stated confidence
is to the share of the group that is right. Otherwise: correctness alone.
An agent that is asked and has no entry in ``actions`` failed: it earns 0 and is left out of that
share; if it is the small role's, its question is deferred.

Version history: v0, the first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from envs.bytes_codec import TextMeter
from envs.corea_deferral.episode import CoreaEpisode, begin, keeps
from envs.corea_deferral.prompts import prompt_for
from envs.corea_deferral.report import GROUP_KEYS, final_infos, transcript
from envs.corea_deferral.scoring import Trace, score
from envs.corea_deferral.settings import CoreaDeferralSettings
from envs.problem_env import ProblemEnv, private, text_of
from envs.roles import role_of
from problems.source import ProblemSource
from rewards.answers.confidence import parse_confidence
from rewards.answers.extract import last_box
from vocabulary import Problem, Scorer, ScoreRequests, UserError


class CoreaDeferralEnv(ProblemEnv):
    """The text environment; ``envs.make`` wraps it in tokens."""

    title = "corea-deferral"
    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "name": "corea_deferral_v0",
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
        "group_keys": GROUP_KEYS,
        "default_group": "problem+role",
    }

    def __init__(
        self,
        settings: CoreaDeferralSettings | None = None,
        *,
        roles: Sequence[str] = ("small", "large"),
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TextMeter] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Set up an environment in which any number of episodes can be played.

        Args:
            settings: see :class:`CoreaDeferralSettings`.
            roles: the small one and the large one.
            scorer: checks answers; an ``AnswerScorer`` of its own without one.
            source: problems for episodes whose options name none; generated chains without one.
            tokenizers: role -> the meter of its tokens, for costs; bytes without one.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: not exactly two roles, or an unknown learner or render mode.
        """
        if len(roles) != 2:
            raise UserError(
                f"corea-deferral: {len(roles)} roles; name two, the small one and the large one."
            )
        self.settings = settings or CoreaDeferralSettings()
        if strangers := set(self.settings.learners) - set(roles):
            raise UserError(
                f"corea-deferral: learners names {', '.join(sorted(strangers))}; "
                f"the roles are {', '.join(roles)}."
            )
        most = max(self.settings.traces, self.settings.eval_traces)
        super().__init__(
            [f"{role}_{place}" for role in roles for place in range(most)],
            roles,
            scorer=scorer,
            source=source,
            tokenizers=tokenizers,
            render_mode=render_mode,
        )
        self._small, self._large = roles
        self._episode: CoreaEpisode | None = None

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: draws the problem, if none is given.
            options: ``problem`` and ``mode`` (train).

        Raises:
            UserError: an option that makes no sense.
        """
        options = options or {}
        episode = begin(self.problem_of(self.seeded(seed), options), options)
        training = episode.mode == "train"
        count = self.settings.traces if training else self.settings.eval_traces
        first = {
            "train": self.settings.learners,
            "eval": (self._small,),
            "responses": self.roles,
        }[episode.mode]
        episode.asked = tuple(f"{role}_{i}" for role in first for i in range(count))
        self._episode = episode
        self.agents = list(self.possible_agents)
        return self._show(episode)

    def step(self, actions: Mapping[str, Any]) -> Any:
        episode = self._episode
        if episode is None or not self.agents:
            return {}, {}, {}, {}, {}
        self._record(episode, actions)
        episode.deferred, asked = self._next(episode)
        episode.asked = asked
        done = not asked
        observations, infos = self._show(episode)
        if done:
            infos = self._final_infos(episode)
            if self.render_mode is not None:
                episode.infos = private(infos)
        return self.stepped(observations, infos, done=done)

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """What ``step(actions)`` will ask of the scorer; changes nothing."""
        episode = self._episode
        if episode is None or not self.agents:
            return ScoreRequests()
        return ScoreRequests(
            tuple(
                (_graded(text_of(actions[agent]), episode.problem), episode.problem)
                for agent in episode.asked
                if agent in actions
            )
        )

    def transcript(self) -> str | None:
        return None if self._episode is None else transcript(self._episode)

    def _record(self, episode: CoreaEpisode, actions: Mapping[str, Any]) -> None:
        per_hundred = self.settings.confidence_per_hundred and episode.mode != "train"
        for agent in episode.asked:
            if agent in actions:
                text = text_of(actions[agent])
                episode.traces[agent] = Trace(
                    agent,
                    role_of(agent),
                    text,
                    self.scorer.check(_graded(text, episode.problem), episode.problem),
                    parse_confidence(text, per_hundred=per_hundred),
                )

    def _next(self, episode: CoreaEpisode) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(agents of the large role that stand in for small ones, who of them is asked now)."""
        cascade = episode.mode == "eval" or (episode.mode == "train" and self.settings.ask_large)
        if episode.deferred or not cascade:
            return episode.deferred, ()
        doubtful: list[str] = []
        for agent in episode.prompted:
            role, _, place = agent.rpartition("_")
            trace = episode.traces.get(agent)
            confidence = None if trace is None else trace.confidence
            if role == self._small and not keeps(confidence, self.settings.threshold):
                doubtful.append(f"{self._large}_{place}")
        # A large role that learns has answered already.
        return tuple(doubtful), tuple(a for a in doubtful if a not in episode.prompted)

    def _show(
        self, episode: CoreaEpisode
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Hand each agent that is asked its prompt."""
        limit = self.settings.max_new_tokens
        if episode.mode != "train":
            limit = self.settings.eval_max_new_tokens or limit
        episode.prompted += episode.asked
        prompts = dict.fromkeys(episode.asked, prompt_for(episode.problem))
        return self.asked(prompts, limit=limit, stop=self.settings.stop)

    def _final_infos(self, episode: CoreaEpisode) -> dict[str, dict[str, Any]]:
        terms: dict[str, dict[str, float]] = {}
        for role in self.roles:
            traces = [trace for trace in episode.traces.values() if trace.role == role]
            if episode.mode == "train":
                scores = score(traces, episode.problem.question, self.settings)
            else:
                scores = [{"correct": float(trace.verdict.correct)} for trace in traces]
            terms |= {trace.agent: scored for trace, scored in zip(traces, scores)}
        return final_infos(
            episode,
            terms,
            self.possible_agents,
            small=self._small,
            large=self._large,
            meters=self.meters,
            settings=self.settings,
        )


def _graded(text: str, problem: Problem) -> str:
    """The part of a trace that answers: its last box, or all of it without one."""
    # The answer to a programming problem is a program, and a box may stand in its comments.
    return text if problem.kind == "code" else last_box(text)
