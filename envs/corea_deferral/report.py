"""What an episode tells of itself: infos for the log, a transcript for people."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from envs.bytes_codec import TextMeter
from envs.corea_deferral.episode import CoreaEpisode, keeps
from envs.corea_deferral.prompts import prompt_for
from envs.corea_deferral.scoring import TERMS, Trace
from envs.corea_deferral.settings import CoreaDeferralSettings
from envs.problem_env import private
from envs.roles import role_of

GROUP_KEYS = ("problem+role", "problem")


def final_infos(
    episode: CoreaEpisode,
    terms: Mapping[str, Mapping[str, float]],
    agents: Sequence[str],
    *,
    small: str,
    large: str,
    meters: Mapping[str, TextMeter],
    settings: CoreaDeferralSettings,
) -> dict[str, dict[str, Any]]:
    """Agent -> its info of the last step."""
    ratio = {small: 1.0, large: settings.size_ratio}
    prompt = prompt_for(episode.problem)
    costs = {
        agent: ratio[trace.role]
        * (
            meters[trace.role].count(prompt)
            + settings.output_weight * meters[trace.role].count(trace.text)
        )
        for agent, trace in episode.traces.items()
    }
    cascade = [
        _outcome(episode, agent, f"{large}_{agent.rpartition('_')[2]}", costs, settings.threshold)
        for agent in episode.prompted
        if role_of(agent) == small and episode.mode != "responses"
    ]
    whole = _whole_episode(episode, cascade)
    problem = episode.problem.id
    infos: dict[str, dict[str, Any]] = {}
    for agent in agents:
        role = role_of(agent)
        report: dict[str, Any] = {}
        if agent in episode.prompted:
            report["failed"] = agent not in episode.traces
        if agent in episode.traces:
            report |= _measured(episode, episode.traces[agent], settings.threshold, role == small)
            report["cost"] = costs[agent]
        infos[agent] = {
            "reward_terms": dict(terms.get(agent, dict.fromkeys(TERMS, 0.0))),
            "groups": dict(zip(GROUP_KEYS, (f"{problem}/{role}", problem))),
            "loss_weight": 1.0,
            "episode": private(whole),
            **report,
        }
    return infos


def _measured(episode: CoreaEpisode, trace: Trace, threshold: float, small: bool) -> dict[str, Any]:
    """What was measured of one answer."""
    measured: dict[str, Any] = {
        "correct": bool(trace.verdict.correct),
        "answer": trace.verdict.answer,
        "method": trace.verdict.method,
        "stated": trace.confidence is not None,
        "confidence": trace.confidence,
    }
    if trace.confidence is not None:
        measured["gap"] = abs(trace.confidence - float(trace.verdict.correct))
    if small:
        measured["deferred"] = not keeps(trace.confidence, threshold)
    return measured


def _outcome(
    episode: CoreaEpisode,
    asked: str,
    stand_in: str,
    costs: Mapping[str, float],
    threshold: float,
) -> dict[str, Any]:
    """One question's final answer: whose it is, whether it is right, what it cost in prompt tokens
    of the small model."""
    own = episode.traces.get(asked)
    deferred = not keeps(None if own is None else own.confidence, threshold)
    final = episode.traces.get(stand_in) if stand_in in episode.deferred else own
    cost = costs.get(asked, 0.0)
    if stand_in in episode.deferred:
        cost += costs.get(stand_in, 0.0)
    return {
        "deferred": deferred,
        "answered_by": None if final is None else final.agent,
        "answer": None if final is None else final.verdict.answer,
        "correct": bool(final is not None and final.verdict.correct),
        "cost": cost,
    }


def _whole_episode(episode: CoreaEpisode, cascade: list[dict[str, Any]]) -> dict[str, Any]:
    """Measurements of the whole episode."""
    rates: dict[str, list[bool]] = {}
    for trace in episode.traces.values():
        rates.setdefault(trace.role, []).append(bool(trace.verdict.correct))
    return {
        "problem": episode.problem.id,
        "mode": episode.mode,
        "answered": len(episode.traces),
        "failed": len(episode.prompted) - len(episode.traces),
        "p_hat": {role: sum(rights) / len(rights) for role, rights in rates.items()},
        "cascade": cascade,
    }


def transcript(episode: CoreaEpisode) -> str:
    """The episode so far, for a human reader."""
    problem = episode.problem
    lines = [f"{problem.id}: {problem.question}", f"gold answer: {problem.gold}", ""]
    for agent in episode.prompted:
        trace = episode.traces.get(agent)
        lines += [f"== {agent} ==", prompt_for(problem), "--"]
        lines.append("(no answer)" if trace is None else trace.text)
        if info := episode.infos.get(agent):
            terms = info["reward_terms"]
            parts = ", ".join(f"{name} {value:+.3f}" for name, value in terms.items() if value)
            marks = ["deferred"] if info.get("deferred") else []
            verdict = ", ".join(["right" if info.get("correct") else "wrong", *marks])
            lines.append(f"-- {verdict}; reward {math.fsum(terms.values()):+.3f} ({parts})")
        lines.append("")
    return "\n".join(lines)
