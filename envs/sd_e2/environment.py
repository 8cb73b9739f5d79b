"""Diverse exploration by one model: several strategies in one answer, four rewards on one scale.

| | |
|---|---|
| Creation | ``envs.make("sd-e2")``, ``pettingzoo.make("parallel", "sd-e2-v0")`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``alice_0 .. alice_{N-1}``, and as many of each further role |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

The single-model baseline of CoRe's tables (SD-E2, arXiv:2601.17982). Every agent is one trace about
the episode's problem; all of a role are asked at once, and none sees another. A second role is a
second model that learns by itself on the same problems, so that the pair has an oracle.

Modes (``options["mode"]``): ``train``; ``eval``, in which each role writes ``eval_traces`` traces
and the reward is correctness.

Observation: the prompt, once; ``active`` says who is asked.

Rewards are paid at the end: outcome, exploration, exploitation and format, each as its distance
from the mean over the role's traces in standard deviations. An agent that is asked and has no entry
in ``actions`` failed: it earns 0 and is left out of those means.

Version history: v0, the first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from envs.bytes_codec import TextMeter
from envs.core_teaching.prompts import prompt_for
from envs.problem_env import ProblemEnv, private, text_of
from envs.roles import role_of
from envs.sd_e2.report import GROUP_KEYS, final_infos, transcript
from envs.sd_e2.scoring import Score, score
from envs.sd_e2.settings import SdE2Settings
from envs.sd_e2.trace import Trace, parse
from problems.source import ProblemSource
from vocabulary import Problem, Scorer, ScoreRequests, UserError

MODES = ("train", "eval")


class SdE2Env(ProblemEnv):
    """The text environment; ``envs.make`` wraps it in tokens."""

    title = "sd-e2"
    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's convention)
        "name": "sd_e2_v0",
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
        "is_parallelizable": True,
        "group_keys": GROUP_KEYS,
        "default_group": "problem+role",
    }

    def __init__(
        self,
        settings: SdE2Settings | None = None,
        *,
        roles: Sequence[str] = ("alice",),
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TextMeter] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Set up an environment in which any number of episodes can be played.

        Args:
            settings: see :class:`SdE2Settings`.
            roles: one name or more; none has to do with another.
            scorer: checks answers and embeds texts; an ``AnswerScorer`` of its own without one.
            source: problems for episodes whose options name none; generated chains without one.
            tokenizers: role -> the meter of its tokens; nothing here is measured in tokens.
            render_mode: ``human`` prints the transcript of each episode, ``ansi`` returns it.

        Raises:
            UserError: no role, the same one twice, or an unknown render mode.
        """
        if not roles:
            raise UserError("sd-e2: nobody takes part; name at least one role.")
        self.settings = settings or SdE2Settings()
        most = max(self.settings.traces, self.settings.eval_traces)
        super().__init__(
            [f"{role}_{place}" for role in roles for place in range(most)],
            roles,
            scorer=scorer,
            source=source,
            tokenizers=tokenizers,
            render_mode=render_mode,
        )
        self._problem: Problem | None = None
        self._mode = "train"
        self._asked: list[str] = []
        self._traces: dict[str, Trace] = {}
        self._infos: dict[str, dict[str, Any]] = {}

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
        mode = options.get("mode", "train")
        if mode not in MODES:
            raise UserError(f"sd-e2: mode {mode!r} is unknown; choose one of {', '.join(MODES)}.")
        self._problem, self._mode = self.problem_of(self.seeded(seed), options), mode
        count = self.settings.traces if mode == "train" else self.settings.eval_traces
        self._asked = [f"{role}_{place}" for role in self.roles for place in range(count)]
        self._traces, self._infos = {}, {}
        self.agents = list(self.possible_agents)
        return self._shown(self._problem)

    def step(self, actions: Mapping[str, Any]) -> Any:
        problem = self._problem
        if problem is None or not self.agents:
            return {}, {}, {}, {}, {}
        for agent in self._asked:
            if agent in actions:
                self._traces[agent] = self._read(agent, text_of(actions[agent]), problem)
        scores: dict[str, Score] = {}
        for role in self.roles:
            own = [trace for trace in self._traces.values() if trace.role == role]
            found = score(own, self.settings, self.scorer.embed)
            scores |= {trace.agent: one for trace, one in zip(own, found)}
        infos = final_infos(
            problem, self._mode, self._asked, self._traces, scores, self.possible_agents
        )
        if self.render_mode is not None:
            self._infos = private(infos)
        observations = {agent: {"text": "", "active": 0} for agent in self.agents}
        return self.stepped(observations, infos, done=True)

    def score_requests(self, actions: Mapping[str, Any]) -> ScoreRequests:
        """What ``step(actions)`` will ask of the scorer; changes nothing."""
        problem = self._problem
        if problem is None or not self.agents:
            return ScoreRequests()
        texts = [text_of(actions[agent]) for agent in self._asked if agent in actions]
        parsed = [parse(text) for text in texts]
        checks = [*texts, *(block for one in parsed for block in one.blocks)]
        return ScoreRequests(
            tuple((text, problem) for text in checks),
            tuple(text for one in parsed for text in one.reasonings),
        )

    def transcript(self) -> str | None:
        problem = self._problem
        if problem is None:
            return None
        prompt = prompt_for(problem, self.settings.prompt_style)
        return transcript(problem, prompt, self._asked, self._traces, self._infos)

    def _read(self, agent: str, text: str, problem: Problem) -> Trace:
        parsed = parse(text)
        return Trace(
            agent,
            role_of(agent),
            text,
            self.scorer.check(text, problem),
            parsed,
            tuple(self.scorer.check(block, problem).correct for block in parsed.blocks),
        )

    def _shown(
        self, problem: Problem
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Hand everyone who is asked the prompt."""
        limit = self.settings.max_new_tokens
        if self._mode == "eval":
            limit = self.settings.eval_max_new_tokens or limit
        prompts = dict.fromkeys(self._asked, prompt_for(problem, self.settings.prompt_style))
        return self.asked(prompts, limit=limit, stop=self.settings.stop)
