"""DAPO's choice of what to train on (arXiv:2503.14476): informative groups, lengths in bounds."""

from collections.abc import Sequence

import numpy as np

from coterie.algorithms.algorithm import Algorithm
from coterie.algorithms.credit import first_rows, group_statistics, mean_by_member, members, number
from coterie.algorithms.turn_credit import paid_before
from coterie.datatypes import Trajectory


def informative_groups(trajectories: Sequence[Trajectory], key: str) -> set[str]:
    """Ids of the groups whose trainable members have different rewards, whole or still to come at
    some turn (:mod:`coterie.algorithms.turn_credit`).

    Tested on the reward, not on correctness: rewards need not be 0 or 1.
    """
    use = [t for t in trajectories if t.trainable]
    group_N, member_N = number(t.groups[key] for t in use), members(use, key)
    reward_N = np.array([t.reward for t in use], np.float64)
    first_M = first_rows(member_N)
    reward_M, group_M = mean_by_member(reward_N, member_N), group_N[first_M]
    paid_MT = paid_before([use[place].turn_rewards for place in first_M])
    to_come = [reward_M, *(reward_M - paid_M for paid_M in paid_MT.T)]
    varies_K = np.any([group_statistics(to_M, group_M).varies_K for to_M in to_come], axis=0)
    return {t.groups[key] for t, k in zip(use, group_N) if varies_K[k]}


def overlong_penalty(tokens: int, *, limit: int, buffer: int) -> float:
    """0 up to ``limit - buffer`` tokens, from there linearly down to -1 at ``limit``.

    Equation 13 of arXiv:2503.14476.
    """
    return -min(max(tokens - (limit - buffer), 0) / buffer, 1.0)


def with_overlong_penalty(
    trajectories: Sequence[Trajectory], algorithm: Algorithm
) -> list[Trajectory]:
    """Trajectories with the penalty added to their rewards as the term ``overlong``.

    Only sampled tokens count. Without a limit in ``algorithm`` they come back as they are.
    """
    if algorithm.overlong_limit == 0:
        return list(trajectories)
    out = []
    for t in trajectories:
        value = algorithm.overlong_factor * overlong_penalty(
            int(t.mask.sum()), limit=algorithm.overlong_limit, buffer=algorithm.overlong_buffer
        )
        out.append(t.with_term("overlong", value))
    return out
