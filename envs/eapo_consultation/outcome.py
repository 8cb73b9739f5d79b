"""What has happened in a consultation, what is measured of it, and what it is worth."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from coterie.datatypes import Problem, Scorer, Verdict
from coterie.envs.eapo_consultation.messages import Call, Entry, Move
from coterie.envs.eapo_consultation.settings import Consult, EapoConsultationSettings
from coterie.envs.turns import Outcome
from coterie.rewards.consultation import (
    ANSWER,
    answer_reward,
    consult_penalty,
    final_answer,
    is_well_formed,
)
from coterie.rewards.overlap import squad_f1

PARADIGMS = ("self", "direct", "decomposition")
Paradigm = Literal["self", "direct", "decomposition"]

_SAME = 0.75
"""Share of common words from which a query counts as the question itself."""


@dataclass
class Dispatch:
    """One dispatched call and what became of it."""

    call: Call
    query: str
    """What the expert is really asked."""
    accepted: bool
    """The coin's verdict; a reply must come as well."""
    result: str = ""
    """The reply as it enters the context; empty where none does."""
    replied: bool = False

    @property
    def entry(self) -> Entry:
        """What the policy reads of it."""
        if self.result:
            return Entry("OK", self.result, self.call.expert_id)
        return Entry("UNAVAILABLE", "", self.call.expert_id)


@dataclass
class Consultation:
    """What has happened so far."""

    mode: str
    step: int
    replica: int
    consult: Consult
    acceptance: float
    """rho_s"""
    turns_allowed: int
    """Rounds: the smaller of budget and turn budget."""
    max_new_tokens: int
    thinking: bool
    """Whether what the policy wrote ends inside a thought."""
    own: str = ""
    """Everything that the policy wrote."""
    tokens: int = 0
    """The same in the policy's tokens."""
    rounds: list[list[Dispatch]] = field(default_factory=list)
    expert_tokens: int = 0
    """Replies that entered its context, in its tokens."""
    rounds_used: int = 0
    calls_used: int = 0
    answered_calls: int = 0
    """Well-formed blocks of calls by the policy, each followed by a return."""
    errors: int = 0
    ignored: int = 0
    """Calls inside thoughts, which nobody answers."""
    exhausted: bool = False
    """Whether a call came when nothing was left."""
    failed: bool = False

    def record(self, move: Move) -> None:
        """Take down a turn of the policy."""
        self.own += move.text
        self.tokens += move.tokens
        self.thinking = move.thinking

    @property
    def dispatched(self) -> list[Dispatch]:
        """Every dispatched call."""
        return [one for block in self.rounds for one in block]


def final_checks(episode: Consultation, own: str, *, opened: bool) -> list[str]:
    """What :func:`outcome_of` asks of the scorer once the policy has written ``own``."""
    answer = final_answer(own, opened=opened)
    results = [one.result for one in episode.dispatched if one.result]
    return results if answer is None else [*results, _as_answer(answer)]


def outcome_of(
    episode: Consultation,
    problem: Problem,
    settings: EapoConsultationSettings,
    scorer: Scorer,
    policy: str,
    experts: Mapping[int, str],
) -> Outcome:
    """What a consultation is worth at its end, and what is measured of it."""
    opened = settings.opens_thinking
    answer = final_answer(episode.own, opened=opened)
    verdict = Verdict(False, None, "none")
    if answer is not None:
        verdict = scorer.check(_as_answer(answer), problem)
    results = [one.result for one in episode.dispatched]
    told = [bool(text) and scorer.check(text, problem).correct for text in results]
    report = {
        "correct": bool(verdict.correct),
        "answer": verdict.answer,
        "method": verdict.method,
        "formatted": is_well_formed(
            episode.own, answered_calls=episode.answered_calls, opened=opened
        ),
        "f1": squad_f1(answer or "", [problem.gold]),
        "answer_in_returns": any(told),
        **_consulting(episode, problem.question),
    }
    terms = _terms(report, settings, episode)
    asked = Counter(one.call.expert_id for one in episode.dispatched)
    replied = Counter(one.call.expert_id for one in episode.dispatched if one.replied)
    return Outcome(
        # Experts are frozen: nothing that they do is paid.
        terms={policy: terms} | dict.fromkeys(experts.values(), dict.fromkeys(terms, 0.0)),
        loss_weight=dict.fromkeys(experts.values(), 0.0),
        measured={policy: report}
        | {
            agent: {"asked": asked[expert], "replied": replied[expert]}
            for expert, agent in experts.items()
        },
        episode={
            "mode": episode.mode,
            "consult": episode.consult,
            "replica": episode.replica,
            "acceptance": episode.acceptance,
            "turns_allowed": episode.turns_allowed,
            "rounds": _calls(episode, told),
        },
        failed={policy: episode.failed},
        # Whoever gave no answer ran out of tokens, or of words.
        truncated=() if verdict.answer is not None else (policy, *experts.values()),
    )


def _terms(
    report: Mapping[str, Any], settings: EapoConsultationSettings, episode: Consultation
) -> dict[str, float]:
    """What the policy earns."""
    if episode.mode != "train":
        return {"correct": 0.0 if episode.failed else float(report["correct"])}
    if episode.failed:
        return {"answer": 0.0, "consulting": 0.0}
    value = answer_reward(
        settings.answer_reward,
        correct=report["correct"],
        f1=report["f1"],
        formatted=report["formatted"],
    )
    counted = report["calls" if settings.penalised == "dispatched" else "accepted"]
    free = episode.step <= settings.penalty_start
    if free or (settings.penalty_only_if_right and not report["correct"]):
        counted = 0
    return {"answer": value, "consulting": consult_penalty(counted, settings.consult_penalty)}


def _consulting(episode: Consultation, question: str) -> dict[str, Any]:
    """What was measured of the policy's consulting."""
    dispatched = episode.dispatched
    kind = paradigm(question, [one.call.query for one in dispatched])
    return {
        "consults": len(episode.rounds),
        "consulted": bool(episode.rounds),
        "calls": len(dispatched),
        "accepted": sum(bool(one.result) for one in dispatched),
        "rejected": sum(not one.accepted for one in dispatched),
        "unavailable": sum(one.accepted and not one.result for one in dispatched),
        "rounds": episode.rounds_used,
        "errors": episode.errors,
        "exhausted": episode.exhausted,
        "ignored_calls": episode.ignored,
        "response_tokens": episode.tokens,
        "expert_tokens": episode.expert_tokens,
        "acceptance": episode.acceptance,
        "turns_allowed": episode.turns_allowed,
        "paradigm": kind,
        **{f"paradigm_{name}": kind == name for name in PARADIGMS},
    }


def _calls(episode: Consultation, told: Sequence[bool]) -> list[list[dict[str, Any]]]:
    """The consultations, call by call.

    Args:
        episode: at its end.
        told: for each dispatched call, whether a reply that was let in states the gold answer.
    """
    states_gold = iter(told)
    return [
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
    ]


def paradigm(question: str, queries: Sequence[str]) -> Paradigm:
    """How the policy used its experts: not at all; for the question itself; for parts of it.

    A query is the question itself where three quarters of both's words are common.
    """
    if not queries:
        return "self"
    return "direct" if all(_overlap(question, q) >= _SAME for q in queries) else "decomposition"


def _as_answer(answer: str) -> str:
    """The answer as the scorer finds it: nothing else that was written can be mistaken for it."""
    return f"{ANSWER} {answer}"


def _overlap(one: str, other: str) -> float:
    left, right = Counter(one.casefold().split()), Counter(other.casefold().split())
    words = left.total() + right.total()
    return 2 * (left & right).total() / words if words else 0.0
