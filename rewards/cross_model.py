"""What a trace earns by standing apart from the partners' traces of the same round."""

# B traces of one question

import numpy as np
import numpy.typing as npt


def cross_model(
    distance_BB: npt.ArrayLike,
    exploit_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
    *,
    threshold: float,
    margin: float,
    requires_correct_B: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float64]:
    """(B,) unweighted ``q_j max(0, min d - margin)`` over the traces of partner ``j`` in the same
    round, where ``q_j`` is 1 if the best of them earned an exploitation reward of at least
    ``threshold`` (CoRe, arXiv:2601.21600, eq. 6); with several partners their mean.

    A partner without a trace in the round is no partner there. The published form pays wrong
    traces too; ``requires_correct_B`` (the correctness) restricts it to right ones.
    """
    distance_BB = np.asarray(distance_BB, dtype=np.float64)
    exploit_B = np.asarray(exploit_B, dtype=np.float64)
    role_B, round_B = np.asarray(role_B), np.asarray(round_B)
    reward_B = np.zeros(len(exploit_B))
    partners_B = np.zeros(len(exploit_B))
    for a_round in np.unique(round_B):
        for partner in np.unique(role_B[round_B == a_round]):
            theirs = np.flatnonzero((round_B == a_round) & (role_B == partner))
            ours = np.flatnonzero((round_B == a_round) & (role_B != partner))
            partners_B[ours] += 1
            if exploit_B[theirs].max() >= threshold:
                nearest = distance_BB[np.ix_(ours, theirs)].min(axis=1)
                reward_B[ours] += np.maximum(0.0, nearest - margin)
    reward_B /= np.maximum(partners_B, 1)
    if requires_correct_B is not None:
        reward_B[~np.asarray(requires_correct_B, dtype=bool)] = 0.0
    return reward_B
