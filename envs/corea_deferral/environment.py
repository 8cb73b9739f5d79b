r"""Deferral: a small model answers with its confidence; if that is low, a large model answers.

| | |
|---|---|
| Creation | ``coterie.make("corea-deferral")``, PettingZoo's id is ``corea-deferral-v0`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``small_0 .. small_{N-1}``, ``large_0 .. large_{N-1}`` |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

Every agent is one trace about the episode's problem: reasoning, a ``\boxed{}`` answer and a
``\confidence{}``. If trace i of the small role states a confidence below the threshold, or none,
``large_i`` answers. It sees the question but not the small role's attempt, and its own confidence
is ignored (COREA, arXiv:2603.03752, section 3.1).

Modes (``options["mode"]``): ``train``, where each learner writes N traces and nothing is deferred
unless the settings say so; ``eval``, the cascade; ``responses``, where both roles answer every
question, so that any threshold can be evaluated later without sampling again.

Observation: the prompt, once, when the agent is active. With ``prefill_confidence`` an agent whose
answer states no confidence goes on behind ``... is \confidence{``.

Agents get their reward at the end. In training it consists of correctness, format, and the distance
of the stated confidence from the share of right traces in the group; otherwise it is correctness.
An active agent without an entry in ``actions`` failed: it earns 0 and does not count in that share.
A failure of the small role is deferred.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.datatypes import Problem, ScoreRequests, UserError
from coterie.envs.conversation import ConversationEnv
from coterie.envs.corea_deferral.scoring import (
    TERMS,
    ConfidentTrace,
    final_answer,
    graded_part,
    is_kept,
    score,
)
from coterie.envs.corea_deferral.settings import PREFILL, CoreaDeferralSettings, prompt_for
from coterie.envs.problem_env import metadata_of
from coterie.envs.settings import token_limit
from coterie.envs.turns import Answers, Ask, Conversation, Outcome, Turn
from coterie.rewards.grading.answers.confidence import parse_confidence

Traces = Generator[Turn, Answers, dict[str, ConfidentTrace]]


class CoreaDeferralEnv(ConversationEnv):
    """The text environment; ``coterie.make`` wraps it in tokens."""

    title = "corea-deferral"
    metadata = metadata_of("corea_deferral_v0", "problem+role", "problem")
    settings: CoreaDeferralSettings
    settings_class = CoreaDeferralSettings
    default_roles = ("small", "large")
    modes = ("train", "eval", "responses")

    def check_roles(self) -> None:
        if len(self.roles) != 2:
            raise UserError(
                f"corea-deferral: {len(self.roles)} roles; name two, the small one and the large "
                "one."
            )
        if unknown := set(self.settings.learners) - set(self.roles):
            raise UserError(
                f"corea-deferral: learners names {', '.join(sorted(unknown))}; "
                f"the roles are {', '.join(self.roles)}."
            )

    def places(self) -> Mapping[str, int]:
        return dict.fromkeys(self.roles, max(self.settings.traces, self.settings.eval_traces))

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        settings, (small, large) = self.settings, self.roles
        mode = options.get("mode", "train")
        training = mode == "train"
        count = settings.traces if training else settings.eval_traces
        prompt = prompt_for(problem, prefilled=settings.prefill_confidence)
        longest = token_limit(settings, training=training)
        ask = Ask(prompt, max_new_tokens=longest, continues=settings.continues)

        def needed(answers: Answers) -> ScoreRequests:
            return ScoreRequests(
                tuple((graded_part(text, problem), problem) for text in answers.values())
            )

        def traces_of(asks: Mapping[str, Ask], *, prefilled: bool) -> Traces:
            answers = yield Turn(dict(asks), needed)
            added = dict.fromkeys(answers, "")
            if prefilled:
                added = yield from self._prefilled(answers)
            return {
                agent: ConfidentTrace.read(agent, answers[agent], text, problem, self.scorer)
                for agent, text in added.items()
            }

        # In training the learners answer, in evaluation the small model.
        first = {"train": settings.learners, "eval": (small,), "responses": self.roles}[mode]
        asks = {agent: ask for role in first for agent in self.agents_of(role)[:count]}
        traces = yield from traces_of(asks, prefilled=settings.prefill_confidence)

        # Unsure answers are deferred to the large model, which sees the question only.
        pairs = [
            pair for pair in zip(self.agents_of(small), self.agents_of(large)) if pair[0] in asks
        ]
        deferred: dict[str, Ask] = {}
        if mode == "eval" or (training and settings.ask_large):
            unsure = [b for a, b in pairs if not is_kept(traces.get(a), settings.threshold)]
            deferred = dict.fromkeys(unsure, replace(ask, continues=False))
        # A large model that learns has answered already.
        if late := {agent: last for agent, last in deferred.items() if agent not in asks}:
            # Nobody reads its confidence.
            traces |= yield from traces_of(late, prefilled=False)
            asks |= late

        return self._outcome(
            problem,
            traces,
            mode=mode,
            prompt=prompt,
            asked=len(asks),
            pairs=pairs,
            deferred=deferred,
        )

    def _outcome(
        self,
        problem: Problem,
        traces: Mapping[str, ConfidentTrace],
        *,
        mode: str,
        prompt: str,
        asked: int,
        pairs: Sequence[tuple[str, str]],
        deferred: Collection[str],
    ) -> Outcome:
        """Reward the traces, and say what the cascade answers.

        Args:
            problem: the question.
            traces: agent -> its trace.
            mode: of the episode.
            prompt: what all agents were asked.
            asked: number of agents that were asked; those without a trace failed.
            pairs: (agent of the small role, the large one that answers in its place).
            deferred: large agents that were asked because the small one's answer is not kept.
        """
        settings, small = self.settings, self.roles[0]
        terms: dict[str, dict[str, float]] = {
            agent: dict.fromkeys(TERMS, 0.0) for agent in self.possible_agents
        }
        p_hat: dict[str, float] = {}
        for role in self.roles:
            own = [trace for trace in traces.values() if trace.role == role]
            if not own:
                continue
            p_hat[role] = sum(bool(trace.verdict.correct) for trace in own) / len(own)
            if mode == "train":
                earned = score(own, problem.question, settings)
            else:
                earned = [{"correct": trace.verdict.credit} for trace in own]
            terms.update((trace.agent, of_trace) for trace, of_trace in zip(own, earned))
        costs = {agent: self._cost(prompt, trace) for agent, trace in traces.items()}
        cascade: list[dict[str, Any]] = []
        if mode != "responses":
            cascade = [
                final_answer(
                    traces.get(agent),
                    traces.get(stand_in),
                    threshold=settings.threshold,
                    deferred=stand_in in deferred,
                    costs=costs,
                )
                for agent, stand_in in pairs
            ]
        return Outcome(
            terms=terms,
            measured={
                agent: trace.report(settings.threshold if trace.role == small else None)
                | {"cost": costs[agent]}
                for agent, trace in traces.items()
            },
            episode={
                "mode": mode,
                "answered": len(traces),
                "failed": asked - len(traces),
                "p_hat": p_hat,
                "cascade": cascade,
            },
        )

    def _prefilled(self, answers: Answers) -> Generator[Turn, Answers, dict[str, str]]:
        """Let the agents whose answers state no confidence go on with one; return what is added to
        each answer, without the agents that failed."""
        # The number has at most as many tokens as "0.85}" has characters.
        ask = Ask(PREFILL, "continuation", max_new_tokens=8, stop=["}"])
        added = {a: "" for a, text in answers.items() if parse_confidence(text) is not None}
        if silent := [agent for agent in answers if agent not in added]:
            numbers = yield Turn(dict.fromkeys(silent, ask), lambda _: ScoreRequests())
            added |= {agent: PREFILL + number for agent, number in numbers.items()}
        return added

    def _cost(self, prompt: str, trace: ConfidentTrace) -> float:
        """Cost of a trace, in prompt tokens of the small model."""
        count, settings = self.meters[trace.role].count, self.settings
        ratio = 1.0 if trace.role == self.roles[0] else settings.size_ratio
        return ratio * (count(prompt) + settings.output_weight * count(trace.text))
