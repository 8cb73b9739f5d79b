"""Core Teaching: roles that fail alone try again with a hint from a peer that did not.

| | |
|---|---|
| Creation | ``envs.make("core-teaching")``, ``pettingzoo.make("parallel", "core-teaching-v0")`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``role_0 .. role_{K+K'-1}`` for each of at least two roles |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

Every agent is one trace that a role writes about the episode's problem. The first K traces of a
role are cold: all of them are asked at once. If one is right, the best becomes a hint without its
answer. Then the K' others start fresh, never having seen a cold trace: a coin per trace says
whether the hint stands in its prompt (CoRe, arXiv:2601.21600, section 4). The second round is
played whether or not there is a hint; with K' = 0 there is none.

Modes (``options["mode"]``): ``train``; ``eval``, where all K + K' traces of every role are cold,
nobody is taught and the reward is correctness; ``probe``, which is ``train`` with hints shown to
half of the second tries (or to ``options["hint_probability"]`` of them), so that hinted ones can be
compared with un-hinted ones.

Observation: the prompt, once, when the agent is asked; ``active`` says who is asked now.

Rewards are paid to everyone at the end: exploitation, exploration, cross-model distance, trace
accuracy, rescue and, as an extension, the lift of the teacher's hint. An agent that is asked and
has no entry in ``actions`` failed: it earns 0 and is left out of all that is computed over traces.

Version history: v0, the first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs.bytes_codec import TextMeter
from envs.core_teaching.episode import CoreTeachingEpisode, begin, coin, shows_hint
from envs.core_teaching.hints import hint_checks
from envs.core_teaching.prompts import prompt_for
from envs.core_teaching.report import GROUP_KEYS, final_infos, transcript
from envs.core_teaching.scoring import NO_WEIGHTS, Trace, score, texts_to_embed
from envs.core_teaching.settings import CoreTeachingSettings, Weights, weights_at
from envs.core_teaching.teacher import lessons
from envs.problem_env import ProblemEnv, private, text_of
from envs.roles import role_of
from problems.source import ProblemSource
from rewards.rescue import COLD, HINT
from vocabulary import Scorer, ScoreRequests, UserError


class CoreTeachingEnv(ProblemEnv):
    """The text environment; ``envs.make`` wraps it in tokens."""

    title = "core-teaching"
    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "name": "core_teaching_v0",
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
        "group_keys": GROUP_KEYS,
        "default_group": "problem",
    }

    def __init__(
        self,
        settings: CoreTeachingSettings | None = None,
        *,
        roles: Sequence[str] = ("alice", "bob"),
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TextMeter] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Set up an environment in which any number of episodes can be played.

        Args:
            settings: see :class:`CoreTeachingSettings`.
            roles: at least two names.
            scorer: checks answers and embeds texts; an ``AnswerScorer`` of its own without one.
            source: problems for episodes whose options name none; generated chains without one.
            tokenizers: role -> the meter of its tokens, for the length of hints; bytes without one.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: fewer than two roles, the same one twice, or an unknown render mode.
        """
        if len(roles) < 2:
            raise UserError(
                f"core-teaching: {len(roles)} role has no peer to learn from; name at least two."
            )
        self.settings = settings or CoreTeachingSettings()
        per_role = self.settings.k_cold + self.settings.k_hinted
        super().__init__(
            [f"{role}_{k}" for role in roles for k in range(per_role)],
            roles,
            scorer=scorer,
            source=source,
            tokenizers=tokenizers,
            render_mode=render_mode,
        )
        self._second = [
            f"{role}_{k}" for role in roles for k in range(self.settings.k_cold, per_role)
        ]
        self._episode: CoreTeachingEpisode | None = None

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode.

        Args:
            seed: draws the problem (if none is given) and the hint coins.
            options: ``problem``, ``step`` (0), ``epoch`` (1, counted from 1), ``mode`` (train) and,
                for a probe, ``hint_probability`` (0.5).

        Raises:
            UserError: an option that makes no sense.
        """
        options = options or {}
        seed = self.seeded(seed)
        problem = self.problem_of(seed, options)
        episode = begin(problem, seed, options, self.settings.hint_probability)
        if episode.mode == "probe" and not self._second:
            raise UserError("core-teaching: a probe compares second tries; set k_hinted above 0.")
        second = set() if episode.mode == "eval" else set(self._second)
        episode.asked = {agent: None for agent in self.possible_agents if agent not in second}
        self._episode = episode
        self.agents = list(self.possible_agents)
        return self._show(episode)

    def step(self, actions: Mapping[str, Any]) -> Any:
        episode = self._episode
        if episode is None or not self.agents:
            return {}, {}, {}, {}, {}
        self._record(episode, actions)
        done = not self._another_round(episode)
        if done:
            episode.asked = {}
        else:
            self._begin_second_round(episode)
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
        texts = [text_of(actions[agent]) for agent in episode.asked if agent in actions]
        checks = list(texts)
        teaches = self._another_round(episode)
        if teaches:
            checks += [part for text in texts for part in hint_checks(text)]
        embedded: tuple[str, ...] = ()
        if not teaches or self.settings.teacher_score == "total":
            told = [trace.text for trace in episode.traces]
            embedded = texts_to_embed([*told, *texts], self.settings, self._weights(episode))
        return ScoreRequests(tuple((text, episode.problem) for text in checks), embedded)

    def transcript(self) -> str | None:
        return None if self._episode is None else transcript(self._episode)

    def _another_round(self, episode: CoreTeachingEpisode) -> bool:
        return episode.round == COLD and episode.mode != "eval" and bool(self._second)

    def _weights(self, episode: CoreTeachingEpisode) -> Weights:
        if episode.mode == "eval":
            return NO_WEIGHTS
        return weights_at(self.settings, episode.epoch)

    def _record(self, episode: CoreTeachingEpisode, actions: Mapping[str, Any]) -> None:
        for agent, lesson in episode.asked.items():
            if agent in actions:
                text = text_of(actions[agent])
                verdict = self.scorer.check(text, episode.problem)
                taught_by = None if lesson is None else lesson.teacher
                episode.traces.append(
                    Trace(agent, role_of(agent), episode.round, text, verdict, taught_by)
                )
        # Ties go by the order of the roles, then of their samples, whatever the round.
        episode.traces.sort(key=lambda trace: self.possible_agents.index(trace.agent))

    def _begin_second_round(self, episode: CoreTeachingEpisode) -> None:
        traces, problem = episode.traces, episode.problem
        correct = sum(trace.verdict.correct for trace in traces)
        if correct:
            value_B = np.ones(len(traces))
            # A single correct trace has no rival.
            if correct > 1:
                total = self.settings.teacher_score == "total"
                weights = self._weights(episode) if total else NO_WEIGHTS
                scores = score(traces, problem, self.settings, weights, self.scorer.embed)
                value_B = scores.total_B if total else scores.exploit_B
            episode.lessons = lessons(
                traces,
                value_B,
                problem,
                self.settings,
                self.meters,
                lambda text: self.scorer.check(text, problem).correct,
                step=episode.step,
            )
        episode.round = HINT
        episode.asked = {
            agent: episode.lessons.get(role_of(agent))
            if shows_hint(coin(episode.seed, agent), episode.hint_probability)
            else None
            for agent in self._second
        }

    def _show(
        self, episode: CoreTeachingEpisode
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Hand each agent that is asked its prompt."""
        settings = self.settings
        limit = settings.max_new_tokens
        if episode.mode == "eval":
            limit = settings.eval_max_new_tokens or limit
        prompts: dict[str, str] = {}
        for agent, lesson in episode.asked.items():
            hint = None if lesson is None else lesson.hint
            prompts[agent] = prompt_for(episode.problem, settings.prompt_style, hint)
        episode.prompts |= prompts
        return self.asked(prompts, limit=limit, stop=settings.stop)

    def _final_infos(self, episode: CoreTeachingEpisode) -> dict[str, dict[str, Any]]:
        scores = None
        if episode.traces:
            weights = self._weights(episode)
            scores = score(
                episode.traces, episode.problem, self.settings, weights, self.scorer.embed
            )
        cold_prompt = None
        if self.settings.learn_hinted_after == "cold":
            cold_prompt = prompt_for(episode.problem, self.settings.prompt_style, None)
        return final_infos(
            episode,
            scores,
            self.possible_agents,
            loss_weight=self.settings.lambda_b,
            cold_prompt=cold_prompt,
        )
