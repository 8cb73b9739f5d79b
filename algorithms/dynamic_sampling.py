"""DAPO's choice of what to train on (arXiv:2503.14476): informative groups, lengths in bounds."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from algorithms.algorithm import Algorithm
from algorithms.credit import group_statistics
from vocabulary import Trajectory


def informative_groups(trajectories: Sequence[Trajectory], key: str) -> set[str]:
    """Ids of the groups whose trainable rows have different rewards.

    Tested on the reward, not on correctness: rewards need not be 0 or 1.
    """
    use = [t for t in trajectories if t.trainable]
    number: dict[str, int] = {}
    group_N = np.array([number.setdefault(t.groups[key], len(number)) for t in use], np.intp)
    reward_N = np.array([t.reward for t in use], np.float64)
    varies_K = group_statistics(reward_N, group_N).varies_K
    return {name for name, k in number.items() if varies_K[k]}


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
        terms = {**t.reward_terms, "overlong": value}
        out.append(dataclasses.replace(t, reward=t.reward + value, reward_terms=terms))
    return out
