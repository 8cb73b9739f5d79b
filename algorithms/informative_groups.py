"""Groups whose rewards differ, which DAPO samples for (dynamic sampling, arXiv:2503.14476)."""

from collections.abc import Sequence

import numpy as np

from coterie.algorithms.credit import first_rows, group_statistics, mean_by_member, members, number
from coterie.algorithms.turn_credit import paid_before
from coterie.datatypes import Trajectory


def informative_groups(trajectories: Sequence[Trajectory], key: str) -> set[str]:
    """Return the ids of groups whose trainable members have different rewards, or different rewards
    to go at some turn (:mod:`coterie.algorithms.turn_credit`).

    The test uses rewards rather than correctness, because rewards need not be 0 or 1.
    """
    use = [t for t in trajectories if t.trainable]
    group_N, member_N = number(t.groups[key] for t in use), members(use, key)
    reward_N = np.array([t.reward for t in use], np.float64)
    first_M = first_rows(member_N)
    reward_M, group_M = mean_by_member(reward_N, member_N), group_N[first_M]
    paid_MT = paid_before([use[i].turn_rewards for i in first_M])
    to_go = [reward_M, *(reward_M - paid_M for paid_M in paid_MT.T)]
    varies_K = np.any([group_statistics(to_M, group_M).varies_K for to_M in to_go], axis=0)
    return {t.groups[key] for t, k in zip(use, group_N) if varies_K[k]}
