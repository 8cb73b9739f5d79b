"""Majority vote: one answer out of many, without looking at the gold answer."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Vote:
    """The outcome of one question's vote."""

    winner: Hashable | None
    """The answer with most votes, the first cast among equals; None if nobody answered."""
    correct: float
    """1 if the winner is right, else 0."""
    expected: float
    """Probability that the winner is right when ties are broken at random."""


def majority_vote(
    answers: Mapping[str, Sequence[Hashable | None]], correct: Mapping[str, Sequence[bool]]
) -> Vote:
    """The vote over all roles' answers to one question.

    ``answers`` are in normal form: two are the same vote if and only if they are equal. None is
    no vote. Votes are cast in the order of the sorted role names, then of the samples (the
    evaluator of CoRe, arXiv:2601.21600); an answer is as right as its first vote.
    """
    cast = [
        (answer, bool(is_right))
        for role in sorted(answers)
        for answer, is_right in zip(answers[role], correct[role], strict=True)
        if answer is not None
    ]
    if not cast:
        return Vote(winner=None, correct=0.0, expected=0.0)
    right: dict[Hashable, bool] = {}
    for answer, is_right in cast:
        right.setdefault(answer, is_right)
    votes = Counter(answer for answer, _ in cast)
    most = max(votes.values())
    tied = [answer for answer in right if votes[answer] == most]
    return Vote(
        winner=tied[0],
        correct=float(right[tied[0]]),
        expected=sum(right[answer] for answer in tied) / len(tied),
    )
