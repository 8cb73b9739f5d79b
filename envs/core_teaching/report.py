"""What an episode tells about itself: plain data for infos, logs and transcripts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envs.core_teaching.episode import CoreTeachingEpisode
from envs.core_teaching.hints import leaks
from envs.core_teaching.scoring import TERMS, Scores
from envs.problem_env import private
from envs.roles import role_of
from rewards.rescue import COLD, HINT, hint_outcomes

GROUP_KEYS = ("problem", "problem+role", "problem+role+context")


def final_infos(
    episode: CoreTeachingEpisode,
    scores: Scores | None,
    agents: Sequence[str],
    *,
    loss_weight: float,
    cold_prompt: str | None = None,
) -> dict[str, dict[str, Any]]:
    """Agent -> info of the last step; ``scores`` is None when nobody answered.

    Every agent has the keys of the environment contract, and what :func:`_measured` says of its
    trace. One that failed to answer has zero terms and ``failed``. With a ``cold_prompt`` hinted
    traces are learned after it.
    """
    reports = {} if scores is None else _measured(episode, scores)
    whole = _whole_episode(episode, scores, reports)
    rows = {trace.agent: row for row, trace in enumerate(episode.traces)}
    infos: dict[str, dict[str, Any]] = {}
    for agent in agents:
        report = reports.get(agent, {"failed": True, "correct": False})
        terms = dict.fromkeys(("correct",) if episode.mode == "eval" else TERMS, 0.0)
        if scores is not None and agent in rows:
            if episode.mode == "eval":
                terms = {"correct": float(report["correct"])}
            else:
                terms = {
                    name: float(value_B[rows[agent]]) for name, value_B in scores.terms.items()
                }
        second = report.get("round") == "B"
        infos[agent] = {
            "reward_terms": terms,
            "groups": _groups(episode.problem.id, role_of(agent), bool(report.get("hinted"))),
            "loss_weight": loss_weight if second else 1.0,
            "episode": private(whole),
            **report,
        }
        if cold_prompt is not None and report.get("hinted"):
            infos[agent]["learned_after"] = cold_prompt
    return infos


def transcript(episode: CoreTeachingEpisode) -> str:
    """The episode so far, for a human reader."""
    problem = episode.problem
    answers = {trace.agent: trace.text for trace in episode.traces}
    lines = [f"{problem.id}: {problem.question}", f"gold answer: {problem.gold}", ""]
    for agent, prompt in episode.prompts.items():
        lines += [f"== {agent} ==", prompt, "--", answers.get(agent, "(no answer)")]
        if info := episode.infos.get(agent):
            terms = info["reward_terms"]
            parts = ", ".join(f"{name} {value:+.3f}" for name, value in terms.items() if value)
            marks = [mark for mark in ("hinted", "teacher", "rescued", "leak") if info.get(mark)]
            verdict = ", ".join(["right" if info["correct"] else "wrong", *marks])
            lines.append(f"-- {verdict}; reward {math.fsum(terms.values()):+.3f} ({parts})")
        lines.append("")
    return "\n".join(lines)


def _measured(episode: CoreTeachingEpisode, scores: Scores) -> dict[str, dict[str, Any]]:
    """Agent -> what was measured of its trace.

    ``eligible`` traces are the denominator of the rescue rate. A ``control`` is one that would be
    eligible had its coin shown it the hint: its success is what a second try alone is worth.
    """
    cold = [trace for trace in episode.traces if trace.round == COLD]
    tried = {trace.role for trace in cold}
    solved = {trace.role for trace in cold if trace.verdict.correct}
    teachers = {lesson.teacher for lesson in episode.lessons.values()}
    reports: dict[str, dict[str, Any]] = {}
    for row, (trace, outcome) in enumerate(zip(episode.traces, hint_outcomes(scores.lift_B))):
        cold_failed = trace.role in tried - solved
        peer_succeeded = bool(solved - {trace.role})
        lesson = episode.lessons.get(trace.role)
        could_be_taught = trace.round == HINT and lesson is not None
        lift = float(scores.lift_B[row])
        reports[trace.agent] = {
            "failed": False,
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
            "leak": trace.hinted
            and lesson is not None
            and leaks(lesson.hint, episode.problem.gold),
            "teacher": trace.agent in teachers,
            "hint_outcome": outcome,
            "hint_lift": None if math.isnan(lift) else lift,
        }
    return reports


def _whole_episode(
    episode: CoreTeachingEpisode,
    scores: Scores | None,
    reports: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Measurements of the whole episode."""

    def count(key: str, value: Any = True) -> int:
        return sum(report[key] == value for report in reports.values())

    cold: dict[str, list[bool]] = {}
    for trace in episode.traces:
        if trace.round == COLD:
            cold.setdefault(trace.role, []).append(bool(trace.verdict.correct))
    controls = [report for report in reports.values() if report["control"]]
    return {
        "problem": episode.problem.id,
        "mode": episode.mode,
        "answered": len(episode.traces),
        "failed": len(episode.prompts) - len(episode.traces),
        "cold_rate": {role: float(np.mean(rights)) for role, rights in cold.items()},
        "team_correct": any(any(rights) for rights in cold.values()),
        "teachers": {role: lesson.teacher for role, lesson in episode.lessons.items()},
        "hints": {role: lesson.hint for role, lesson in episode.lessons.items()},
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


def _groups(problem: str, role: str, hinted: bool) -> dict[str, str]:
    context = "hinted" if hinted else "cold"
    ids = (problem, f"{problem}/{role}", f"{problem}/{role}/{context}")
    return dict(zip(GROUP_KEYS, ids))
