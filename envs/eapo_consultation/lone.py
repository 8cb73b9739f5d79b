"""Lone traces: answers without experts, which are reread after the experts' replies.

The policy writes them beside the conversation, from the question only, as in evaluation. A wrong
one is scored again after the conversation up to the last accepted reply (``reread_after``). This
on-policy distillation needs no further tokens of experts (:mod:`coterie.algorithms.distillation`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from coterie.datatypes import Problem, Scorer
from coterie.envs.bytes_codec import TextMeter
from coterie.envs.eapo_consultation.outcome import Consultation, answer_terms, grade, report_answer
from coterie.envs.eapo_consultation.settings import EapoConsultationSettings
from coterie.envs.turns import Outcome


def with_lone(
    outcome: Outcome,
    agents: Iterable[str],
    traces: Mapping[str, str],
    episode: Consultation,
    problem: Problem,
    settings: EapoConsultationSettings,
    scorer: Scorer,
    meter: TextMeter,
) -> Outcome:
    """Add lone traces to a conversation's outcome.

    Args:
        outcome: the outcome of the conversation.
        agents: agents for lone traces.
        traces: agent -> its trace, for agents that answered.
        episode: the conversation at its end.
        problem: the problem.
        settings: the environment's settings.
        scorer: grades the traces.
        meter: meter of the policy's tokens.
    """
    terms: dict[str, Mapping[str, float]] = {}
    measured: dict[str, Mapping[str, Any]] = {}
    read: dict[str, str] = {}
    truncated = [*outcome.truncated]
    for agent in agents:
        trace = traces.get(agent)
        if trace is None:
            terms[agent] = dict.fromkeys(next(iter(outcome.terms.values())), 0.0)
            continue
        verdict = grade(trace, problem, scorer)
        report = report_answer(trace, verdict, problem, answered_calls=0)
        terms[agent] = answer_terms(report, verdict.credit, settings)
        measured[agent] = {**report, "lone": True, "response_tokens": meter.count(trace)}
        if verdict.answer is None:
            truncated.append(agent)
        if episode.heard and not report["correct"] and settings.reread == "wrong":
            read[agent] = episode.heard
    return Outcome(
        terms={**outcome.terms, **terms},
        measured={**outcome.measured, **measured},
        episode={**outcome.episode, "reread": len(read)},
        loss_weight=outcome.loss_weight,
        reread_after=read,
        truncated=truncated,
        failed={
            **(outcome.failed or {}),
            **{agent: episode.mode == "train" and agent not in traces for agent in agents},
        },
    )
