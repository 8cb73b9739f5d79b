"""Core Teaching: roles that fail without help try again with a hint from a peer that succeeded.

| | |
|---|---|
| Creation | ``coterie.make("core-teaching")``, PettingZoo's id is ``core-teaching-v0`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``role_0 .. role_{K+K'-1}`` for each of at least two roles |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

Every agent is one trace of a role about the episode's problem. The first K traces of a role are
cold and run concurrently. If some are right, the best one becomes a hint without its answer. Then
the other K' traces start without a view of any cold trace, and a coin for each trace decides
whether its prompt has the hint (CoRe, arXiv:2601.21600, section 4). The second round takes place
with or without a hint; with K' = 0 there is no second round.

Modes (``options["mode"]``): ``train``; ``eval``, where all K + K' traces of every role are cold and
the reward is correctness; ``probe``, which is ``train`` with hints shown to half of the second
tries (or to the share ``options["hint_probability"]``), so that hinted and unhinted second tries
can be compared.

Observation: the prompt, once, when the agent is active.

Every agent gets its reward at the end: exploitation, exploration, cross-model distance, trace
accuracy, rescue and, as an extension, the lift of the teacher's hint. An active agent without an
entry in ``actions`` failed: it earns 0 and enters no computation over traces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.datatypes import Problem, ScoreRequests, UserError, derive_seed, role_of
from coterie.envs.conversation import ConversationEnv
from coterie.envs.core_teaching.hints import Taught, contrasts, hint_checks, hints_for, to_reread
from coterie.envs.core_teaching.measured import report_traces, whole_episode
from coterie.envs.core_teaching.scoring import (
    NO_WEIGHTS,
    TERMS,
    Hint,
    Trace,
    score,
    texts_to_embed,
)
from coterie.envs.core_teaching.settings import CoreTeachingSettings, TermWeights, weights_at
from coterie.envs.core_teaching.terms import term_name
from coterie.envs.problem_env import metadata_of
from coterie.envs.prompts import strategy_prompt
from coterie.envs.settings import token_limit
from coterie.envs.turns import Answers, Ask, Conversation, Outcome, Turn
from coterie.rewards.rescue import COLD, HINT

_PROBE_HINT_PROBABILITY = 0.5


class CoreTeachingEnv(ConversationEnv):
    """The text environment; ``coterie.make`` wraps it in tokens."""

    title = "core-teaching"
    metadata = metadata_of("core_teaching_v0", "problem", "problem+role", "problem+role+context")
    settings: CoreTeachingSettings
    settings_class = CoreTeachingSettings
    default_roles = ("alice", "bob")
    modes = ("train", "eval", "probe")

    def check_roles(self) -> None:
        if len(self.roles) < 2:
            raise UserError(
                f"core-teaching: {len(self.roles)} role has no peer to learn from; name at least "
                "two."
            )

    def places(self) -> Mapping[str, int]:
        return dict.fromkeys(self.roles, self.settings.k_cold + self.settings.k_hinted)

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        """Algorithm 1 of CoRe (arXiv:2601.21600).

        Options: ``mode``, ``step`` (0), ``epoch`` (1, counted from 1) and, for a probe,
        ``hint_probability`` (0.5).
        """
        settings, mode = self.settings, options.get("mode", "train")
        step, evaluating = self.number_of(options, "step", 0), mode == "eval"
        epoch = self.number_of(options, "epoch", 1)
        weights = NO_WEIGHTS if evaluating else weights_at(settings, epoch)
        hint_probability = settings.hint_probability
        if mode == "probe":
            hint_probability = self.number_of(options, "hint_probability", _PROBE_HINT_PROBABILITY)
        first, second = self._rounds(mode)
        limit = token_limit(settings, training=not evaluating)

        def ask(hint: str | None) -> Ask:
            return Ask(strategy_prompt(problem, settings.prompt_style, hint), max_new_tokens=limit)

        # Round A: all roles answer without help.
        cold = ask(None)
        rereads = settings.reread != "none" and mode == "train"
        teaches = bool(second) or rereads
        answers = yield Turn(
            dict.fromkeys(first, cold),
            lambda answers: self._needed(problem, answers, (), weights, teaches=teaches),
        )
        traces = self._read(problem, answers, COLD, {})

        # The best right trace, without its answer, is each role's hint.
        taught: dict[str, Hint] = {}
        if second:
            taught = self._hints(problem, traces, weights, step)
        reread: dict[str, Hint] = {}
        if rereads:
            hints = self._reread_hints(problem, traces, weights, step)
            reread = to_reread(traces, hints, settings.reread)
        contrast: dict[str, str] = {}
        if settings.reread_contrast:
            contrast = contrasts(traces, reread, problem, settings, self.meters)
            reread = {agent: hint for agent, hint in reread.items() if agent in contrast}

        if second:
            # Round B: all roles answer again; a coin for each trace decides whether it sees a hint.
            shown = {
                agent: taught[role]
                for agent in second
                if (role := role_of(agent)) in taught
                and shows_hint(coin(self.episode_seed, agent), hint_probability)
            }
            hinted = {agent: ask(hint.text) for agent, hint in shown.items()}
            answers = yield Turn(
                dict.fromkeys(second, cold) | hinted,
                lambda answers: self._needed(problem, answers, traces, weights, teaches=False),
            )
            traces += self._read(problem, answers, HINT, shown)
            # Ties are broken by the order of agents, whatever the round.
            order = {agent: i for i, agent in enumerate(self.possible_agents)}
            traces.sort(key=lambda trace: order[trace.agent])

        reread_hints = {role_of(agent): hint for agent, hint in reread.items()}
        asked = len(first) + len(second)
        outcome = self._outcome(
            problem, traces, weights, taught, reread_hints, mode=mode, asked=asked
        )
        after_cold = settings.learn_hinted_after == "cold"
        return replace(
            outcome,
            learned_after={t.agent: cold.text for t in traces if t.hinted and after_cold},
            reread_after={agent: ask(hint.text).text for agent, hint in reread.items()},
            contrast_after={agent: ask(hint).text for agent, hint in contrast.items()},
        )

    def _outcome(
        self,
        problem: Problem,
        traces: list[Trace],
        weights: TermWeights,
        taught: Mapping[str, Hint],
        reread_hints: Mapping[str, Hint],
        *,
        mode: str,
        asked: int,
    ) -> Outcome:
        """Reward all traces of the question together.

        Args:
            problem: the question.
            traces: in the order of agents.
            weights: of the terms.
            taught: role -> its hint in the second round.
            reread_hints: role -> the hint after which its traces are reread.
            mode: of the episode.
            asked: number of agents that were asked; those without a trace failed.
        """
        settings, evaluating = self.settings, mode == "eval"
        scores = score(traces, problem, settings, weights, self.scorer.embed) if traces else None
        reports = (
            {} if scores is None else report_traces(traces, scores, taught, reread_hints, problem)
        )
        names = ("correct",) if evaluating else (*TERMS, *map(term_name, settings.terms))
        terms = dict.fromkeys(self.possible_agents, dict.fromkeys(names, 0.0))
        if evaluating:
            terms |= {trace.agent: {"correct": trace.verdict.credit} for trace in traces}
        elif scores is not None:
            terms |= {trace.agent: scores.of(row) for row, trace in enumerate(traces)}
        hinted = [trace.agent for trace in traces if trace.hinted]
        return Outcome(
            terms=terms,
            measured={a: reports.get(a, {"correct": False}) for a in self.possible_agents},
            episode={"mode": mode, "failed": asked - len(traces)}
            | whole_episode(traces, scores, taught, reread_hints, reports),
            groups={
                agent: {
                    "problem+role+context": f"{problem.id}/{role_of(agent)}/"
                    f"{'hinted' if agent in hinted else 'cold'}"
                }
                for agent in self.possible_agents
            },
            loss_weight=dict.fromkeys(self.possible_agents, 1.0)
            | {trace.agent: settings.lambda_b for trace in traces if trace.round == HINT},
        )

    def _rounds(self, mode: str) -> tuple[list[str], list[str]]:
        """The agents of the cold round and of the second one.

        Raises:
            UserError: a probe has no second tries.
        """
        by_role = [self.agents_of(role) for role in self.roles]
        if mode == "eval":
            return [agent for agents in by_role for agent in agents], []
        cold = self.settings.k_cold
        if mode == "probe" and not self.settings.probed:
            raise UserError(
                "core-teaching: a probe compares second tries; set k_hinted above 0, or k_cold "
                "above 1."
            )
        if mode == "probe" and self.settings.k_hinted == 0:
            # Without a second round in training, the last cold trace is the probe's second try.
            cold -= 1
        first = [agent for agents in by_role for agent in agents[:cold]]
        return first, [agent for agents in by_role for agent in agents[cold:]]

    def _read(
        self, problem: Problem, answers: Answers, round_: int, shown: Mapping[str, Hint]
    ) -> list[Trace]:
        return [
            Trace(
                agent,
                role_of(agent),
                round_,
                text,
                self.scorer.check(text, problem),
                shown[agent].teacher if agent in shown else None,
            )
            for agent, text in answers.items()
        ]

    def _hints(
        self,
        problem: Problem,
        traces: list[Trace],
        weights: TermWeights,
        step: int,
        among: Taught = "all",
    ) -> dict[str, Hint]:
        """Role -> its hint; empty if no trace is right."""
        settings, value_B = self.settings, np.ones(len(traces))
        # Without a second right trace there is nothing to rank.
        if sum(trace.verdict.correct for trace in traces) > 1:
            total = settings.teacher_score == "total"
            weights = weights if total else NO_WEIGHTS
            scores = score(traces, problem, settings, weights, self.scorer.embed)
            value_B = scores.total_B if total else scores.exploit_B

        def states_gold(text: str) -> bool:
            return self.scorer.check(text, problem).correct

        return hints_for(
            traces,
            value_B,
            problem,
            settings,
            self.meters,
            states_gold,
            step=step,
            among=among,
        )

    def _reread_hints(
        self, problem: Problem, traces: list[Trace], weights: TermWeights, step: int
    ) -> dict[str, Hint]:
        """Role -> the hint after which its traces are reread."""
        right = {r: [t.verdict.correct for t in traces if t.role == r] for r in self.roles}
        least = self.settings.reread_least
        reliable = {
            role for role, correct in right.items() if correct and np.mean(correct) >= least
        }
        traces = [trace for trace in traces if trace.role in reliable]
        return self._hints(problem, traces, weights, step, self.settings.reread_hint)

    def _needed(
        self,
        problem: Problem,
        answers: Answers,
        before: Sequence[Trace],
        weights: TermWeights,
        *,
        teaches: bool,
    ) -> ScoreRequests:
        """Scores that are needed after a round; ``teaches``: whether its traces become hints."""
        texts = list(answers.values())
        checks = texts + [part for text in texts if teaches for part in hint_checks(text)]
        embedded: tuple[str, ...] = ()
        if not teaches or self.settings.teacher_score == "total":
            compared = [*(trace.text for trace in before), *texts]
            embedded = texts_to_embed(compared, self.settings, weights)
        return ScoreRequests(tuple((text, problem) for text in checks), embedded)


def coin(seed: int, agent: str) -> float:
    """Return the agent's draw u in [0, 1), which depends only on seed and agent."""
    return derive_seed("core-teaching", "hint coin", seed, agent) / 2**63


def shows_hint(u: float, probability: float) -> bool:
    """Whether the draw ``u`` shows the hint; with probability 0 it never does."""
    return u < probability
