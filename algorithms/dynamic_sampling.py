"""DAPO's selection of training data (arXiv:2503.14476): informative groups, bounded lengths."""

from collections.abc import Sequence

import numpy as np

from coterie.algorithms.algorithm import Algorithm
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


def overlong_penalty(tokens: int, *, limit: int, buffer: int) -> float:
    """Return 0 up to ``limit - buffer`` tokens, then linearly down to -1 at ``limit``.

    Source: equation 13 of arXiv:2503.14476.
    """
    return -min(max(tokens - (limit - buffer), 0) / buffer, 1.0)


def overlong_term(tokens: int, algorithm: Algorithm) -> float:
    """The reward of an answer's length in sampled ``tokens``; 0 if ``algorithm`` has no limit."""
    if algorithm.overlong_limit == 0:
        return 0.0
    return algorithm.overlong_factor * overlong_penalty(
        tokens, limit=algorithm.overlong_limit, buffer=algorithm.overlong_buffer
    )


def with_overlong_penalty(
    trajectories: Sequence[Trajectory], algorithm: Algorithm
) -> list[Trajectory]:
    """Add the penalty to the rewards as the term ``overlong``.

    Only sampled tokens count. Without a limit in ``algorithm`` the rows stay unchanged.
    """
    if algorithm.overlong_limit == 0:
        return list(trajectories)
    return [
        t.with_term("overlong", overlong_term(int(t.mask.sum()), algorithm)) for t in trajectories
    ]
