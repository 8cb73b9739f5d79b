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
"""Smallest share of common words at which a query counts as the question itself."""


@dataclass
class Dispatch:
    """A dispatched call with its reply."""

    call: ExpertCall
    query: str
    """The query that the expert gets."""
    accepted: bool
    """Whether the coin accepts a reply, if there is one."""
    result: str = ""
    """The reply in the policy's context; empty if there is none."""
    replied: bool = False

    @property
    def entry(self) -> ReturnEntry:
        """The entry that the policy reads."""
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
    """Most rounds: the smaller of budget and turn budget."""
    max_new_tokens: int
    thinking: bool = False
    """Whether the policy's text ends inside a thought."""
    own: str = ""
    """All text of the policy."""
    tokens: int = 0
    """Length of ``own`` in the policy's tokens."""
    rounds: list[list[Dispatch]] = field(default_factory=list)
    expert_tokens: int = 0
    """Length of the replies in the policy's context, in its tokens."""
    rounds_used: int = 0
    calls_used: int = 0
    answered_calls: int = 0
    """Well-formed blocks of calls, each followed by a return."""
    errors: int = 0
    ignored: int = 0
    """Calls inside thoughts, which get no return."""
    exhausted: bool = False
    """Whether the policy called after its budget was spent."""
    said: str = ""
    """The policy's context so far, including its own text."""
    heard: str = ""
    """The policy's context up to the last return with a reply; empty without replies."""
    failed: bool = False
    _replies: int = 0

    def show(self, text: str) -> None:
        """Add text that the policy reads; called after each return."""
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


def grade(own: str, problem: Problem, scorer: Scorer) -> Verdict:
    """Grade the answer in all text of the policy."""
    check = graded_part(own, problem.kind)
    return Verdict(False, None, "none") if check is None else scorer.check(check, problem)


def outcome_of(
    episode: Consultation,
    problem: Problem,
    settings: EapoConsultationSettings,
    scorer: Scorer,
    policy: str,
    experts: Mapping[int, str],
) -> Outcome:
    """Return rewards and measurements of a consultation at its end.

    Args:
        episode: the state of the consultation.
        problem: the problem.
        settings: the environment's settings.
        scorer: grades the answer and the replies.
        policy: the agent that consults.
        experts: expert id -> agent.
    """
    verdict = grade(episode.own, problem, scorer)
    results = [dispatch.result for dispatch in episode.dispatched]
    states_gold = [bool(text) and scorer.check(text, problem).correct for text in results]
    calls = episode.answered_calls
    report = {
        **report_answer(episode.own, verdict, problem, answered_calls=calls),
        "answer_in_returns": any(states_gold),
        **_consulting(episode, problem.question),
    }
    terms = _terms(report, verdict.credit, settings, episode)
    queries = Counter(dispatch.call.expert_id for dispatch in episode.dispatched)
    replied = Counter(
        dispatch.call.expert_id for dispatch in episode.dispatched if dispatch.replied
    )
    return Outcome(
        # Experts are frozen and earn nothing.
        terms={policy: terms} | dict.fromkeys(experts.values(), dict.fromkeys(terms, 0.0)),
        loss_weight=dict.fromkeys(experts.values(), 0.0),
        measured={policy: report}
        | {
            agent: {"asked": queries[expert], "replied": replied[expert]}
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
        # Without an answer, the policy ran out of tokens or stopped early.
        truncated=() if verdict.answer is not None else (policy, *experts.values()),
    )


def report_answer(
    own: str,
    verdict: Verdict,
    problem: Problem,
    *,
    answered_calls: int,
) -> dict[str, Any]:
    """Return measurements of the policy's answer.

    Args:
        own: all text of the policy.
        verdict: the verdict on its answer.
        problem: the problem.
        answered_calls: well-formed blocks of calls in it, each followed by a return.
    """
    return {
        "correct": bool(verdict.correct),
        "answer": verdict.answer,
        "method": verdict.method,
        "formatted": is_well_formed(own, answered_calls=answered_calls),
        "f1": answer_f1(own, verdict, problem),
    }


def answer_terms(
    report: Mapping[str, Any], credit: float, settings: EapoConsultationSettings
) -> dict[str, float]:
    """Return the training reward of an answer without consulting; ``credit`` is that of its
    verdict."""
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
    """The policy's reward terms."""
    if episode.mode != "train":
        return {"correct": 0.0 if episode.failed else credit}
    if episode.failed:
        return {"answer": 0.0, "consulting": 0.0}
    counted = report["calls" if settings.penalised == "dispatched" else "accepted"]
    # What the policy did not choose costs it nothing.
    free = episode.step <= settings.penalty_start or episode.consult == "always"
    if free or (settings.penalty_only_if_right and not report["correct"]):
        counted = 0
    cost = consult_penalty(counted, settings.consult_penalty)
    return {**answer_terms(report, credit, settings), "consulting": cost}


def _consulting(episode: Consultation, question: str) -> dict[str, Any]:
    """Measurements of the policy's consulting."""
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
    """The calls of each round; ``states_gold``: for each dispatched call, whether an accepted reply
    states the right answer."""
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
    """Classify the use of experts: none, for the question itself, or for parts of it.

    A query is the question itself if three quarters of their words are common.
    """
    if not queries:
        return "self"
    return "direct" if all(_overlap(question, q) >= _SAME for q in queries) else "decomposition"


def _overlap(question: str, query: str) -> float:
    left, right = Counter(question.casefold().split()), Counter(query.casefold().split())
    words = left.total() + right.total()
    return 2 * (left & right).total() / words if words else 0.0
