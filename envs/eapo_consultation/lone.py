"""Lone traces: answers without experts, which are reread after the experts' replies.

The policy writes them beside the conversation, from the question only, as in evaluation. A wrong
one is scored again after the conversation up to the last accepted reply (``reread_after``). This
on-policy distillation needs no further tokens of experts (:mod:`coterie.algorithms.distillation`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coterie.datatypes import Problem, Scorer, Verdict
from coterie.envs.eapo_consultation.outcome import (
    Consultation,
    answer_terms,
    as_graded,
)
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings
from coterie.envs.turns import Outcome
from coterie.rewards.consultation import graded_part


@dataclass(frozen=True)
class LoneTrace:
    """An answer without experts, graded."""

    text: str
    tokens: int
    """Length in the policy's tokens."""
    verdict: Verdict


def lone_checks(texts: Iterable[str], problem: Problem) -> list[str]:
    """Return the texts that :func:`grade_lone` checks."""
    checks = (graded_part(text, problem.kind) for text in texts)
    return [check for check in checks if check is not None]


def grade_lone(text: str, tokens: int, problem: Problem, scorer: Scorer) -> LoneTrace:
    """Grade a lone trace."""
    check = graded_part(text, problem.kind)
    verdict = Verdict(False, None, "none") if check is None else scorer.check(check, problem)
    return LoneTrace(text, tokens, verdict)


def with_lone(
    outcome: Outcome,
    agents: Iterable[str],
    traces: Mapping[str, LoneTrace],
    episode: Consultation,
    problem: Problem,
    settings: EapoConsultationSettings,
) -> Outcome:
    """Add lone traces to a conversation's outcome.

    Args:
        outcome: the outcome of the conversation.
        agents: agents for lone traces.
        traces: agent -> its trace, for agents that answered.
        episode: the conversation at its end.
        problem: the problem.
        settings: the environment's settings.
    """
    terms: dict[str, Mapping[str, float]] = {}
    measured: dict[str, Mapping[str, Any]] = {}
    read: dict[str, str] = {}
    for agent in agents:
        trace = traces.get(agent)
        if trace is None:
            terms[agent] = dict.fromkeys(next(iter(outcome.terms.values())), 0.0)
            continue
        report = as_graded(trace.text, trace.verdict, problem, answered_calls=0)
        terms[agent] = answer_terms(report, trace.verdict.credit, settings)
        measured[agent] = {**report, "lone": True, "response_tokens": trace.tokens}
        if episode.heard and not report["correct"] and settings.reread == "wrong":
            read[agent] = episode.heard
    return Outcome(
        terms={**outcome.terms, **terms},
        measured={**outcome.measured, **measured},
        episode={**outcome.episode, "reread": len(read)},
        loss_weight=outcome.loss_weight,
        reread_after=read,
        truncated=(*outcome.truncated, *(a for a, t in traces.items() if t.verdict.answer is None)),
        failed={
            **(outcome.failed or {}),
            **{agent: episode.mode == "train" and agent not in traces for agent in agents},
        },
    )
