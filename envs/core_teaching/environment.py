"""Core Teaching: roles that fail alone try again with a hint from a peer that did not.

| | |
|---|---|
| Creation | ``coterie.make("core-teaching")``, PettingZoo's id is ``core-teaching-v0`` |
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
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.datatypes import Problem, ScoreRequests, UserError, derive_seed
from coterie.envs.contract import role_of
from coterie.envs.conversation import ConversationEnv
from coterie.envs.core_teaching.hints import Taught, hint_checks, hints_for, to_reread
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
from coterie.envs.turns import Answers, Ask, Conversation, Outcome, Turn, agent_by_agent
from coterie.rewards.rescue import COLD, HINT

_PROBE_HINT_PROBABILITY = 0.5


class CoreTeachingEnv(ConversationEnv, guarded=False):
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
        step, evaluating = int(options.get("step", 0)), mode == "eval"
        weights = weights_at(settings, int(options.get("epoch", 1)))
        if evaluating:
            weights = NO_WEIGHTS
        hint_probability = settings.hint_probability
        if mode == "probe":
            hint_probability = float(options.get("hint_probability", _PROBE_HINT_PROBABILITY))
            if not settings.probed:
                raise UserError(
                    "core-teaching: a probe compares second tries; set k_hinted above 0, or k_cold "
                    "above 1."
                )
        first, second = [], []
        alone = settings.k_cold - (mode == "probe" and not settings.k_hinted)
        for role in self.roles:
            place = None if evaluating else alone
            first += self.agents_of(role)[:place]
            second += self.agents_of(role)[place:] if place else []
        limit = token_limit(settings, training=not evaluating)

        def ask(hint: str | None) -> Ask:
            return Ask(strategy_prompt(problem, settings.prompt_style, hint), max_new_tokens=limit)

        # Round A: everyone tries alone.
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
            behind = self._reread_hints(problem, traces, weights, step)
            reread = to_reread(traces, behind, settings.reread)

        if second:
            # Round B: everyone tries once more; a coin per trace says whether it sees the hint.
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
            # Ties go by the order of the roles, then of their samples, whatever the round.
            order = {agent: place for place, agent in enumerate(self.possible_agents)}
            traces.sort(key=lambda trace: order[trace.agent])

        # All traces of the question are rewarded together.
        scores = score(traces, problem, settings, weights, self.scorer.embed) if traces else None
        read = {role_of(agent): hint for agent, hint in reread.items()}
        reports = {} if scores is None else report_traces(traces, scores, taught, read, problem)
        names = ("correct",) if evaluating else (*TERMS, *map(term_name, settings.terms))
        terms = dict.fromkeys(self.possible_agents, dict.fromkeys(names, 0.0))
        for row, trace in enumerate(traces):
            terms[trace.agent] = {"correct": trace.verdict.credit}
            if scores is not None and not evaluating:
                terms[trace.agent] = scores.of(row)
        seen = [trace.agent for trace in traces if trace.hinted]
        failed = len(first) + len(second) - len(traces)
        return Outcome(
            terms=terms,
            measured={a: reports.get(a, {"correct": False}) for a in self.possible_agents},
            episode={"mode": mode, "failed": failed}
            | whole_episode(traces, scores, taught, read, reports),
            groups={
                agent: {
                    "problem+role+context": f"{problem.id}/{role_of(agent)}/"
                    f"{'hinted' if agent in seen else 'cold'}"
                }
                for agent in self.possible_agents
            },
            loss_weight=dict.fromkeys(self.possible_agents, 1.0)
            | {trace.agent: settings.lambda_b for trace in traces if trace.round == HINT},
            learned_after=dict.fromkeys(seen, cold.text)
            if settings.learn_hinted_after == "cold"
            else {},
            reread_after={agent: ask(hint.text).text for agent, hint in reread.items()},
        )

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
        """Role -> its hint; empty where no trace is right."""
        settings, value_B = self.settings, np.ones(len(traces))
        # A single right trace has no rival.
        if sum(trace.verdict.correct for trace in traces) > 1:
            total = settings.teacher_score == "total"
            weights = weights if total else NO_WEIGHTS
            scores = score(traces, problem, settings, weights, self.scorer.embed)
            value_B = scores.total_B if total else scores.exploit_B

        def states_gold(text: str) -> bool:
            return self.scorer.check(text, problem).correct

        arguments = (problem, settings, self.meters, states_gold)
        return hints_for(traces, value_B, *arguments, step=step, among=among)

    def _reread_hints(
        self, problem: Problem, traces: list[Trace], weights: TermWeights, step: int
    ) -> dict[str, Hint]:
        """Role -> the hint after which its traces are read again."""
        right = {r: [t.verdict.correct for t in traces if t.role == r] for r in self.roles}
        least = self.settings.reread_least
        sure = {role for role, correct in right.items() if correct and np.mean(correct) >= least}
        traces = [trace for trace in traces if trace.role in sure]
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
        """What is asked of the scorer after a round; ``teaches``: whether another one follows."""
        texts = list(answers.values())
        checks = texts + [part for text in texts if teaches for part in hint_checks(text)]
        embedded: tuple[str, ...] = ()
        if not teaches or self.settings.teacher_score == "total":
            compared = [*(trace.text for trace in before), *texts]
            embedded = texts_to_embed(compared, self.settings, weights)
        return ScoreRequests(tuple((text, problem) for text in checks), embedded)

    def retell(self, problem: Problem) -> str:
        marks = ("hinted", "teacher", "rescued", "leak")
        return agent_by_agent(problem, self.turns(), self.last_infos, marks=marks)


def coin(seed: int, agent: str) -> float:
    """This agent's draw u in [0, 1), which depends on nothing else."""
    return derive_seed("core-teaching", "hint coin", seed, agent) / 2**63


def shows_hint(u: float, probability: float) -> bool:
    """Whether the draw ``u`` shows the hint (strictly below, so probability 0 never does)."""
    return u < probability
