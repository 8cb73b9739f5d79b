"""Rewards of one role's traces on one question, and the final answer of a deferral."""

# N traces of one role, in agent order

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.datatypes import Problem, Scorer, Verdict, role_of
from coterie.envs.corea_deferral.settings import CoreaDeferralSettings
from coterie.rewards.confidence import confidence_format, confidence_reward, target
from coterie.rewards.grading.answers.confidence import parse_confidence, without_confidences
from coterie.rewards.grading.answers.extract import last_box

TERMS = ("correct", "format", "confidence")
"""Names of the reward terms."""


@dataclass(frozen=True)
class ConfidentTrace:
    """An answer, graded, with its stated confidence."""

    agent: str
    role: str
    text: str
    verdict: Verdict
    confidence: float | None
    """The stated confidence; None if there is none, or it is invalid."""

    @classmethod
    def read(
        cls, agent: str, answer: str, added: str, problem: Problem, scorer: Scorer
    ) -> "ConfidentTrace":
        """Grade an answer.

        Args:
            agent: who wrote it.
            answer: the text that is graded.
            added: a confidence that was asked for after it, or nothing.
            problem: the problem.
            scorer: grades the answer.
        """
        verdict = scorer.check(graded_part(answer, problem), problem)
        confidence = parse_confidence(answer + added)
        return cls(agent, role_of(agent), answer + added, verdict, confidence)

    def report(self, threshold: float | None) -> dict[str, Any]:
        """Return measurements for the log; with ``threshold``, also whether it is deferred."""
        correct, stated = bool(self.verdict.correct), self.confidence is not None
        measured: dict[str, Any] = {
            "correct": correct,
            "answer": self.verdict.answer,
            "method": self.verdict.method,
            "stated": stated,
            "confidence": self.confidence,
        }
        if self.confidence is not None:
            measured["gap"] = abs(self.confidence - float(correct))
        if threshold is not None:
            measured["deferred"] = not is_kept(self, threshold)
        return measured


def graded_part(text: str, problem: Problem) -> str:
    """Return the part of a trace that is graded: its last box, or without a box all of it but the
    confidences."""
    # A program is graded as a whole; a box may stand in its comments.
    return text if problem.kind == "code" else without_confidences(last_box(text))


def is_kept(trace: ConfidentTrace | None, threshold: float) -> bool:
    """Whether the small model's answer is kept: its confidence reaches the threshold. Missing
    answers and answers without a confidence are deferred."""
    return trace is not None and trace.confidence is not None and trace.confidence >= threshold


def final_answer(
    own: ConfidentTrace | None,
    stand_in: ConfidentTrace | None,
    *,
    threshold: float,
    deferred: bool,
    costs: Mapping[str, float],
) -> dict[str, Any]:
    """Return one question's final answer: its agent, correctness, and cost in prompt tokens of the
    small model.

    Args:
        own: the small model's answer.
        stand_in: the large model's answer.
        threshold: least confidence with which the small model's answer is kept.
        deferred: whether the large model answered because the small model's answer is not kept.
        costs: agent -> the cost of its trace.
    """
    final = stand_in if deferred else own
    paid = [own, stand_in] if deferred else [own]
    return {
        "deferred": not is_kept(own, threshold),
        "answered_by": None if final is None else final.agent,
        "answer": None if final is None else final.verdict.answer,
        "correct": bool(final is not None and final.verdict.correct),
        "cost": sum((costs[trace.agent] for trace in paid if trace is not None), 0.0),
    }


def score(
    traces: Sequence[ConfidentTrace], question: str, settings: CoreaDeferralSettings
) -> list[dict[str, float]]:
    """Return the weighted reward terms of each trace (COREA, arXiv:2603.03752, section 3.2).

    Args:
        traces: N traces of one role on one question.
        question: the text of the question; the format requires its language.
        settings: the environment's settings.
    """
    correct_N = np.array([trace.verdict.correct for trace in traces], dtype=np.float64)
    confident_N = np.zeros(len(traces))
    if settings.confidence_reward != "none":
        stated_N = [np.nan if t.confidence is None else t.confidence for t in traces]
        target_N = target(correct_N, settings.p_hat)
        confident_N = confidence_reward(
            stated_N, target_N, settings.confidence_reward, settings.epsilon
        )
    return [
        {
            "correct": settings.w_correct * trace.verdict.credit,
            "format": settings.w_format * confidence_format(trace.text, question),
            "confidence": settings.w_confidence * float(confident),
        }
        for trace, confident in zip(traces, confident_N)
    ]
