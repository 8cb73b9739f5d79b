"""What an episode tells of itself: infos for the log, a transcript for people."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from envs.problem_env import private
from envs.roles import role_of
from envs.sd_e2.scoring import TERMS, Score
from envs.sd_e2.trace import Trace
from vocabulary import Problem

GROUP_KEYS = ("problem+role", "problem")


def final_infos(
    problem: Problem,
    mode: str,
    asked: Sequence[str],
    traces: Mapping[str, Trace],
    scores: Mapping[str, Score],
    agents: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """Agent -> its info of the last step."""
    training = mode == "train"
    whole = {
        "problem": problem.id,
        "mode": mode,
        "answered": len(traces),
        "failed": len(asked) - len(traces),
        "right": {
            role: sum(t.verdict.correct for t in traces.values() if t.role == role)
            for role in dict.fromkeys(map(role_of, asked))
        },
    }
    infos: dict[str, dict[str, Any]] = {}
    for agent in agents:
        report: dict[str, Any] = {"failed": agent not in traces} if agent in asked else {}
        terms = dict.fromkeys(TERMS if training else ("correct",), 0.0)
        if agent in traces:
            report |= _measured(traces[agent], scores[agent])
            terms = scores[agent].terms if training else {"correct": float(report["correct"])}
        ids = (f"{problem.id}/{role_of(agent)}", problem.id)
        infos[agent] = {
            "reward_terms": dict(terms),
            "groups": dict(zip(GROUP_KEYS, ids)),
            "loss_weight": 1.0,
            "episode": private(whole),
            **report,
        }
    return infos


def _measured(trace: Trace, score: Score) -> dict[str, Any]:
    """What was measured of one answer."""
    return {
        "correct": bool(trace.verdict.correct),
        "answer": trace.verdict.answer,
        "method": trace.verdict.method,
        "strategies": score.strategies,
        "strategies_right": sum(trace.right),
        "distinct": score.distinct,
        "diversity": score.diversity,
        "complete": trace.parsed.complete,
        **{f"raw_{name}": value for name, value in score.raw.items()},
    }


def transcript(
    problem: Problem,
    prompt: str,
    asked: Sequence[str],
    traces: Mapping[str, Trace],
    infos: Mapping[str, Mapping[str, Any]],
) -> str:
    """The episode so far, for a human reader."""
    lines = [f"{problem.id}: {problem.question}", f"gold answer: {problem.gold}", "", prompt, ""]
    for agent in asked:
        lines.append(f"== {agent} ==")
        lines.append(traces[agent].text if agent in traces else "(no answer)")
        if info := infos.get(agent):
            terms = info["reward_terms"]
            parts = ", ".join(f"{name} {value:+.3f}" for name, value in terms.items() if value)
            verdict = "right" if info.get("correct") else "wrong"
            lines.append(f"-- {verdict}; reward {math.fsum(terms.values()):+.3f} ({parts})")
        lines.append("")
    return "\n".join(lines)
