"""The state of a consultation, its measurements and its rewards."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from coterie.datatypes import Problem, Scorer, Verdict
from coterie.envs.eapo_consultation.messages import ExpertCall, Move, ReturnEntry
from coterie.envs.eapo_consultation.settings import Consult, EapoConsultationSettings
from coterie.envs.turns import Outcome
from coterie.rewards.consultation import (
    answer_f1,
    answer_reward,
    consult_penalty,
    graded_part,
    is_well_formed,
)

PARADIGMS = ("self", "direct", "decomposition")
Paradigm = Literal["self", "direct", "decomposition"]

_SAME = 0.75
"""Share of common words from which a query counts as the question itself."""


@dataclass
class Dispatch:
    """One dispatched call and what became of it."""

    call: ExpertCall
    query: str
    """What the expert is really asked."""
    accepted: bool
    """The coin's verdict; a reply must come as well."""
    result: str = ""
    """The reply as it enters the context; empty where none does."""
    replied: bool = False

    @property
    def entry(self) -> ReturnEntry:
        """What the policy reads of it."""
        if self.result:
            return ReturnEntry("OK", self.result, self.call.expert_id)
        return ReturnEntry("UNAVAILABLE", "", self.call.expert_id)


@dataclass
class Consultation:
    """The state of one conversation."""

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
    """Length of what the policy wrote, in its tokens."""
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
    said: str = ""
    """The conversation so far: what the policy was shown and what it wrote."""
    heard: str = ""
    """The conversation up to the last return with a reply in it; empty where none came in."""
    failed: bool = False
    _replies: int = 0

    def show(self, text: str) -> None:
        """Add what the policy is shown; called after each return."""
        self.said += text
        replies = sum(bool(dispatch.result) for dispatch in self.dispatched)
        if replies > self._replies:
            self._replies, self.heard = replies, self.said

    def record(self, move: Move) -> None:
        """Add a turn of the policy."""
        self.said += move.text
        self.own += move.text
        self.tokens += move.tokens
        self.thinking = move.thinking

    @property
    def dispatched(self) -> list[Dispatch]:
        """Every dispatched call."""
        return [dispatch for block in self.rounds for dispatch in block]


def final_checks(episode: Consultation, own: str, problem: Problem, *, opened: bool) -> list[str]:
    """What :func:`outcome_of` asks of the scorer once the policy has written ``own``."""
    check = graded_part(own, problem.kind, opened=opened)
    results = [dispatch.result for dispatch in episode.dispatched if dispatch.result]
    return results if check is None else [*results, check]


def outcome_of(
    episode: Consultation,
    problem: Problem,
    settings: EapoConsultationSettings,
    scorer: Scorer,
    policy: str,
    experts: Mapping[int, str],
) -> Outcome:
    """Rewards and measurements of a consultation at its end.

    Args:
        episode: its state.
        problem: what it is about.
        settings: the environment's.
        scorer: grades the answer, and whether a reply states it.
        policy: the agent that consults.
        experts: expert id -> agent.
    """
    check = graded_part(episode.own, problem.kind, opened=settings.opens_thinking)
    verdict = Verdict(False, None, "none") if check is None else scorer.check(check, problem)
    results = [dispatch.result for dispatch in episode.dispatched]
    states_gold = [bool(text) and scorer.check(text, problem).correct for text in results]
    calls = episode.answered_calls
    report = {
        **as_graded(episode.own, verdict, problem, settings, answered_calls=calls),
        "answer_in_returns": any(states_gold),
        **_consulting(episode, problem.question),
    }
    terms = _terms(report, verdict.credit, settings, episode)
    asked = Counter(dispatch.call.expert_id for dispatch in episode.dispatched)
    replied = Counter(
        dispatch.call.expert_id for dispatch in episode.dispatched if dispatch.replied
    )
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
            "rounds": _calls(episode, states_gold),
        },
        failed={policy: episode.failed},
        # Whoever gave no answer ran out of tokens, or of words.
        truncated=() if verdict.answer is not None else (policy, *experts.values()),
    )


def as_graded(
    own: str,
    verdict: Verdict,
    problem: Problem,
    settings: EapoConsultationSettings,
    *,
    answered_calls: int,
) -> dict[str, Any]:
    """What was measured of the final answer of what the policy wrote.

    Args:
        own: everything that it wrote.
        verdict: of its answer.
        problem: what it is about.
        settings: the environment's.
        answered_calls: well-formed blocks of calls in it, each followed by a return.
    """
    opened = settings.opens_thinking
    return {
        "correct": bool(verdict.correct),
        "answer": verdict.answer,
        "method": verdict.method,
        "formatted": is_well_formed(own, answered_calls=answered_calls, opened=opened),
        "f1": answer_f1(own, verdict, problem, opened=opened),
    }


def answer_terms(
    report: Mapping[str, Any], credit: float, settings: EapoConsultationSettings
) -> dict[str, float]:
    """What a graded answer, with the credit of its verdict, earns in training, where nobody was
    asked."""
    value = answer_reward(
        settings.answer_reward,
        credit=credit,
        f1=report["f1"],
        formatted=report["formatted"],
    )
    return {"answer": value, "consulting": 0.0}


def _terms(
    report: Mapping[str, Any],
    credit: float,
    settings: EapoConsultationSettings,
    episode: Consultation,
) -> dict[str, float]:
    """What the policy earns."""
    if episode.mode != "train":
        return {"correct": 0.0 if episode.failed else credit}
    if episode.failed:
        return {"answer": 0.0, "consulting": 0.0}
    counted = report["calls" if settings.penalised == "dispatched" else "accepted"]
    free = episode.step <= settings.penalty_start
    if free or (settings.penalty_only_if_right and not report["correct"]):
        counted = 0
    cost = consult_penalty(counted, settings.consult_penalty)
    return {**answer_terms(report, credit, settings), "consulting": cost}


def _consulting(episode: Consultation, question: str) -> dict[str, Any]:
    """What was measured of the policy's consulting."""
    dispatched = episode.dispatched
    kind = paradigm(question, [dispatch.call.query for dispatch in dispatched])
    return {
        "consults": len(episode.rounds),
        "consulted": bool(episode.rounds),
        "calls": len(dispatched),
        "accepted": sum(bool(dispatch.result) for dispatch in dispatched),
        "rejected": sum(not dispatch.accepted for dispatch in dispatched),
        "unavailable": sum(dispatch.accepted and not dispatch.result for dispatch in dispatched),
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


def _calls(episode: Consultation, states_gold: Sequence[bool]) -> list[list[dict[str, Any]]]:
    """The consultations, call by call.

    Args:
        episode: at its end.
        states_gold: for each dispatched call, whether an accepted reply states the gold answer.
    """
    verdicts = iter(states_gold)
    return [
        [
            {
                "expert_id": dispatch.call.expert_id,
                "query": dispatch.call.query,
                "accepted": dispatch.accepted,
                "replied": dispatch.replied,
                "result": dispatch.result,
                "states_gold": next(verdicts),
            }
            for dispatch in block
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


def _overlap(question: str, query: str) -> float:
    left, right = Counter(question.casefold().split()), Counter(query.casefold().split())
    words = left.total() + right.total()
    return 2 * (left & right).total() / words if words else 0.0
