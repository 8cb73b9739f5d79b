"""Groups whose rewards differ, which DAPO samples for (dynamic sampling, arXiv:2503.14476)."""

from collections.abc import Sequence

import numpy as np

from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.credit import (
    first_rows,
    group_statistics,
    mean_by_member,
    members,
    number,
    reward_terms,
    sum_of_scaled_terms,
)
from coterie.algorithms.turn_credit import paid_before
from coterie.datatypes import Trajectory


def informative_groups(
    trajectories: Sequence[Trajectory],
    key: str,
    algorithm: Algorithm = Algorithm(),  # noqa: B008 (frozen)
) -> set[str]:
    """Return the ids of groups whose trainable members have different rewards, or different rewards
    to go at some turn (:mod:`coterie.algorithms.turn_credit`).

    The test uses rewards rather than correctness, because rewards need not be 0 or 1. If the
    algorithm scales each term by itself, it uses their sum then: equal rewards may have terms that
    do not cancel out.
    """
    use = [t for t in trajectories if t.trainable]
    group_N, member_N = number(t.groups[key] for t in use), members(use, key)
    first_M = first_rows(member_N)
    group_M = group_N[first_M]
    if algorithm.combine == "normalise-then-sum":
        term_MK = mean_by_member(reward_terms(use), member_N)
        compared = [sum_of_scaled_terms(term_MK, group_M, algorithm)]
    else:
        reward_M = mean_by_member(np.array([t.reward for t in use], np.float64), member_N)
        paid_MT = paid_before([use[i].turn_rewards for i in first_M])
        compared = [reward_M, *(reward_M - paid_M for paid_M in paid_MT.T)]
    varies_K = np.any([group_statistics(value_M, group_M).varies_K for value_M in compared], axis=0)
    return {t.groups[key] for t, k in zip(use, group_N) if varies_K[k]}
