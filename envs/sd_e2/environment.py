"""Diverse exploration by one model: several strategies in an answer, and four normalized rewards.

| | |
|---|---|
| Creation | ``coterie.make("sd-e2")``, ``pettingzoo.make("parallel", "sd-e2-v0")`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``alice_0 .. alice_{N-1}``, and as many of each further role |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

This is the single-model baseline of CoRe's tables (SD-E2, arXiv:2601.17982). Every agent is one
trace about the episode's problem, and no trace sees another. A second role is a second model that
learns separately on the same problems, so that the pair has an oracle.

Modes (``options["mode"]``): ``train``; ``eval``, where each role writes ``eval_traces`` traces and
the reward is correctness.

Observation: the prompt, once.

Agents get their reward at the end: outcome, exploration, exploitation and format, each as a z-score
over the role's traces. An active agent without an entry in ``actions`` failed: it earns 0 and does
not count in the z-scores.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie.datatypes import Problem, ScoreRequests, UserError
from coterie.envs.conversation import ConversationEnv
from coterie.envs.problem_env import metadata_of
from coterie.envs.prompts import strategy_prompt
from coterie.envs.sd_e2.scoring import TERMS, StrategyTrace, parse, score
from coterie.envs.sd_e2.settings import SdE2Settings
from coterie.envs.settings import token_limit
from coterie.envs.turns import Answers, Ask, Conversation, Outcome, Turn


class SdE2Env(ConversationEnv):
    """The text environment; ``coterie.make`` wraps it in tokens."""

    title = "sd-e2"
    metadata = metadata_of("sd_e2_v0", "problem+role", "problem")
    settings: SdE2Settings
    settings_class = SdE2Settings
    default_roles = ("alice",)
    modes = ("train", "eval")

    def check_roles(self) -> None:
        if not self.roles:
            raise UserError("sd-e2 needs at least one role: name one with --roles.")

    def places(self) -> Mapping[str, int]:
        return dict.fromkeys(self.roles, max(self.settings.traces, self.settings.eval_traces))

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        settings, mode = self.settings, options.get("mode", "train")
        training = mode == "train"
        count = settings.traces if training else settings.eval_traces
        agents_of = {role: self.agents_of(role)[:count] for role in self.roles}

        def needed(answers: Answers) -> ScoreRequests:
            parsed = [parse(text) for text in answers.values()]
            checks = [*answers.values(), *(block for answer in parsed for block in answer.blocks)]
            reasonings = tuple(text for answer in parsed for text in answer.reasonings)
            return ScoreRequests(tuple((text, problem) for text in checks), reasonings)

        # All agents answer concurrently.
        prompt = strategy_prompt(problem, settings.prompt_style)
        ask = Ask(prompt, max_new_tokens=token_limit(settings, training=training))
        answers = yield Turn({a: ask for agents in agents_of.values() for a in agents}, needed)

        # Each term is normalized over the traces of a role.
        terms: dict[str, dict[str, float]] = {}
        measured: dict[str, dict[str, Any]] = {}
        right: dict[str, int] = {}
        for role, agents in agents_of.items():
            answered = [agent for agent in agents if agent in answers]
            traces = [
                StrategyTrace.read(answers[agent], problem, self.scorer) for agent in answered
            ]
            right[role] = sum(trace.verdict.correct for trace in traces)
            scores = score(traces, settings, self.scorer.embed)
            for agent, trace, earned in zip(answered, traces, scores):
                measured[agent] = earned.report(trace)
                terms[agent] = earned.terms if training else {"correct": trace.verdict.credit}
        nothing: dict[str, float] = dict.fromkeys(TERMS if training else ("correct",), 0.0)
        return Outcome(
            terms={agent: terms.get(agent, nothing) for agent in self.possible_agents},
            measured=measured,
            episode={
                "mode": mode,
                "answered": len(answers),
                "failed": sum(map(len, agents_of.values())) - len(answers),
                "right": right,
            },
        )
