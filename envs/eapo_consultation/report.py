"""What a conversation tells about itself: plain data for infos, logs and transcripts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from envs.eapo_consultation.episode import Consultation
from vocabulary import Verdict

GROUP_KEYS = ("problem", "problem+role")
PARADIGMS = ("self", "direct", "decomposition")
Paradigm = Literal["self", "direct", "decomposition"]

_SAME = 0.75
"""Share of common words from which a query counts as the question itself."""


def measured(
    episode: Consultation, verdict: Verdict, *, formatted: bool, f1: float, told: Sequence[bool]
) -> dict[str, Any]:
    """What was measured of the policy's conversation.

    Args:
        episode: at its end.
        verdict: of the final answer.
        formatted: whether the format was kept.
        f1: of the final answer against the gold one.
        told: for each dispatched call, whether a reply that was let in states the gold answer.
    """
    asked = episode.asked
    accepted = sum(bool(one.result) for one in asked)
    kind = paradigm(episode.problem.question, [one.call.query for one in asked])
    return {
        "failed": episode.failed,
        "correct": bool(verdict.correct),
        "answer": verdict.answer,
        "method": verdict.method,
        "formatted": formatted,
        "f1": f1,
        "consults": len(episode.rounds),
        "consulted": bool(episode.rounds),
        "calls": len(asked),
        "accepted": accepted,
        "rejected": sum(not one.accepted for one in asked),
        "unavailable": sum(one.accepted and not one.result for one in asked),
        "rounds": episode.rounds_used,
        "errors": episode.errors,
        "exhausted": episode.exhausted,
        "ignored_calls": episode.ignored,
        "response_tokens": episode.tokens,
        "expert_tokens": episode.expert_tokens,
        "answer_in_returns": any(told),
        "acceptance": episode.acceptance,
        "turns_allowed": episode.turns_allowed,
        "paradigm": kind,
        **{f"paradigm_{name}": kind == name for name in PARADIGMS},
    }


def whole_episode(episode: Consultation, told: Sequence[bool]) -> dict[str, Any]:
    """The consultations, call by call."""
    states_gold = iter(told)
    return {
        "problem": episode.problem.id,
        "mode": episode.mode,
        "consult": episode.consult,
        "replica": episode.replica,
        "acceptance": episode.acceptance,
        "turns_allowed": episode.turns_allowed,
        "rounds": [
            [
                {
                    "expert_id": one.call.expert_id,
                    "query": one.call.query,
                    "accepted": one.accepted,
                    "replied": one.replied,
                    "result": one.result,
                    "states_gold": next(states_gold),
                }
                for one in block
            ]
            for block in episode.rounds
        ],
    }


def expert_infos(episode: Consultation, agent_of: Mapping[int, str]) -> dict[str, dict[str, Any]]:
    """Expert agent -> what was asked of it and how often it answered."""
    asked: Counter[int] = Counter()
    replied: Counter[int] = Counter()
    for one in episode.asked:
        asked[one.call.expert_id] += 1
        replied[one.call.expert_id] += one.replied
    return {
        agent: {"asked": asked[expert], "replied": replied[expert]}
        for expert, agent in agent_of.items()
    }


def paradigm(question: str, queries: Sequence[str]) -> Paradigm:
    """How the policy used its experts: not at all; for the question itself; for parts of it.

    A query is the question itself where three quarters of both's words are common.
    """
    if not queries:
        return "self"
    return "direct" if all(_overlap(question, q) >= _SAME for q in queries) else "decomposition"


def groups(problem: str, role: str) -> dict[str, str]:
    """Group key -> id."""
    return dict(zip(GROUP_KEYS, (problem, f"{problem}/{role}")))


def transcript(episode: Consultation) -> str:
    """The conversation so far, for a human reader."""
    lines = [f"{episode.problem.id}: gold answer {episode.problem.gold}", ""]
    for who, text in episode.pieces:
        lines += [f"== {who} ==", text, ""]
    if info := episode.infos.get("policy_0"):
        terms = ", ".join(f"{name} {value:+.3f}" for name, value in info["reward_terms"].items())
        lines.append(f"{'right' if info['correct'] else 'wrong'}; {terms}")
    return "\n".join(lines)


def _overlap(one: str, other: str) -> float:
    left, right = Counter(one.casefold().split()), Counter(other.casefold().split())
    words = left.total() + right.total()
    return 2 * (left & right).total() / words if words else 0.0
