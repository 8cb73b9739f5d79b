"""Pass@k of a role and of a team, and the vote."""

# Q questions, N samples of one role, M roles

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats


def unbiased(samples: npt.ArrayLike, right: npt.ArrayLike, k: int) -> Floats:
    """Probability that ``k`` of ``samples`` drawn without replacement hold one of the ``right``.

    Elementwise; NaN where there are fewer than ``k`` samples (arXiv:2107.03374, eq. 1).
    """
    if k < 1:
        raise ValueError(f"pass@{k}: k is at least 1")
    samples, right = as_floats(samples)[..., None], as_floats(right)[..., None]
    j = np.arange(1, int(samples.max(initial=0)) + 1)
    # 1 - C(n-c, k) / C(n, k) = 1 - prod_{j = n-c+1}^{n} (1 - k/j); the factor of j = k is 0
    drawn = (j > samples - right) & (j <= samples)
    passed = 1.0 - np.where(drawn, 1.0 - k / j, 1.0).prod(axis=-1)
    return np.where(samples[..., 0] >= k, passed, np.nan)


def pass_at_k(correct_QN: npt.ArrayLike, k: int) -> Floats:
    """(Q,) unbiased pass@k of each question: the expected maximum of k samples drawn without
    replacement, for scores other than 0 and 1 too."""
    correct_QN = as_floats(correct_QN)
    samples_Q = (~np.isnan(correct_QN)).sum(axis=1)
    if is_binary(correct_QN):
        return unbiased(samples_Q, (correct_QN > 0).sum(axis=1), k)
    # sum_i x_(i) (P(one of the i highest is drawn) - P(one of the i - 1 highest is drawn))
    best_QN = -np.sort(-correct_QN, axis=1)
    reached_QN = np.stack([unbiased(samples_Q, i + 1, k) for i in range(best_QN.shape[1])], axis=1)
    return (np.nan_to_num(best_QN) * np.diff(reached_QN, axis=1, prepend=0.0)).sum(axis=1)


def is_binary(score: npt.ArrayLike) -> bool:
    """Whether nothing but 0 and 1 was scored."""
    score = as_floats(score)
    return bool(np.isin(score[~np.isnan(score)], (0.0, 1.0)).all())


# Role -> (Q, N of that role), the same questions in the same order.
Samples = Mapping[str, npt.ArrayLike]


def union(solved: Mapping[str, npt.ArrayLike]) -> Floats:
    """(Q,) probability that any role solves the question, from each role's (Q,) probability.

    ``1 - prod_m (1 - p_m)``, as the roles' samples are independent given the question. For zeros
    and ones it is "any". NaN where a role is missing.
    """
    return 1.0 - np.prod([1.0 - as_floats(values) for values in solved.values()], axis=0)


def team_pass_at_k(correct: Samples, k: int) -> Floats:
    """(Q,) unbiased pass@k of a team with k samples of each role:
    ``1 - prod_m C(n_m - c_m, k) / C(n_m, k)``."""
    return union({role: pass_at_k(correct_QN, k) for role, correct_QN in correct.items()})


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


def pass_columns(correct: Samples, ks: Iterable[int]) -> dict[str, Floats]:
    """``pass@K/ROLE`` and ``team_pass@K`` of each question, by name.

    The team solves what any role solves, see :func:`union`.
    """
    columns: dict[str, Floats] = {}
    for k in ks:
        solved = {role: pass_at_k(correct_QN, k) for role, correct_QN in correct.items()}
        columns |= {f"pass@{k}/{role}": solved_Q for role, solved_Q in solved.items()}
        columns[f"team_pass@{k}"] = union(solved)
    return columns
