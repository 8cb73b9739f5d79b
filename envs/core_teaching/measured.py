"""Measurements of traces and episodes, for the log."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coterie.datatypes import Problem
from coterie.envs.core_teaching.scoring import Hint, Scores, Trace
from coterie.envs.reasoning import leaks
from coterie.rewards.rescue import COLD, HINT, hint_outcomes


def report_traces(
    traces: Sequence[Trace],
    scores: Scores,
    taught: Mapping[str, Hint],
    reread_hints: Mapping[str, Hint],
    problem: Problem,
) -> dict[str, dict[str, Any]]:
    """Return agent -> measurements of its trace.

    ``eligible`` traces are the denominator of the rescue rate. A ``control`` would be eligible if
    its coin had shown the hint; its success measures a second try without help.

    Args:
        traces: B traces of one question.
        scores: their scores.
        taught: role -> its hint in the second round.
        reread_hints: role -> the hint after which its traces are reread.
        problem: the question.
    """
    tried = {trace.role for trace in traces if trace.round == COLD}
    solved = {trace.role for trace in traces if trace.round == COLD and trace.verdict.correct}
    teachers = {hint.teacher for hint in (*taught.values(), *reread_hints.values())}
    reports: dict[str, dict[str, Any]] = {}
    for row, (trace, outcome) in enumerate(zip(traces, hint_outcomes(scores.lift_B))):
        cold_failed = trace.role in tried - solved
        peer_succeeded = bool(solved - {trace.role})
        hint = taught.get(trace.role)
        leaked = hint is not None and any(leaks(hint.text, gold) for gold in problem.golds)
        could_be_taught = trace.round == HINT and hint is not None
        lift = float(scores.lift_B[row])
        reports[trace.agent] = {
            "correct": bool(trace.verdict.correct),
            "answer": trace.verdict.answer,
            "method": trace.verdict.method,
            "partial": float(scores.partial_B[row]),
            "round": "A" if trace.round == COLD else "B",
            "hinted": trace.hinted,
            "cold_failed": cold_failed,
            "peer_succeeded": peer_succeeded,
            "eligible": bool(scores.eligible_B[row]),
            "rescued": bool(scores.rescued_B[row]),
            "control": could_be_taught and cold_failed and peer_succeeded and not trace.hinted,
            "leak": trace.hinted and leaked,
            "teacher": trace.agent in teachers,
            "hint_outcome": outcome,
            "hint_lift": None if math.isnan(lift) else lift,
        }
    return reports


def whole_episode(
    traces: Sequence[Trace],
    scores: Scores | None,
    taught: Mapping[str, Hint],
    reread_hints: Mapping[str, Hint],
    reports: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return measurements of the whole episode; ``scores`` is None if nobody answered."""

    def count(key: str, value: Any = True) -> int:
        return sum(report[key] == value for report in reports.values())

    cold: dict[str, list[bool]] = {}
    for trace in traces:
        if trace.round == COLD:
            cold.setdefault(trace.role, []).append(bool(trace.verdict.correct))
    controls = [report for report in reports.values() if report["control"]]
    return {
        "answered": len(traces),
        "cold_rate": {role: float(np.mean(rights)) for role, rights in cold.items()},
        "team_correct": any(any(rights) for rights in cold.values()),
        "teachers": {role: hint.teacher for role, hint in taught.items()},
        "hints": {role: hint.text for role, hint in taught.items()},
        "reread_teachers": {role: hint.teacher for role, hint in reread_hints.items()},
        "reread_hints": {role: hint.text for role, hint in reread_hints.items()},
        "hinted": count("hinted"),
        "leaked": count("leak"),
        "helped": count("hint_outcome", "helped"),
        "hurt": count("hint_outcome", "hurt"),
        "neutral": count("hint_outcome", "neutral"),
        "eligible": count("eligible"),
        "rescued": count("rescued"),
        "controls": len(controls),
        "controls_correct": sum(report["correct"] for report in controls),
        "exploration_zero": None if scores is None else scores.exploration_zero,
    }
