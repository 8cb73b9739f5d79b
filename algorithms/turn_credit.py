"""Credit for turns. A turn gets no credit for earlier rewards.

Legend: M members, N rows, T most turns of any member.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from coterie.datatypes import Trajectory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
TurnBonus = Mapping[int, Floats]
"""Index of a row -> (turns,) additions to its advantage for the tokens of each turn."""


def turn_bonus(
    rows: Sequence[Trajectory],
    member_N: Ints,
    reward_M: Floats,
    compare: Callable[[Floats], Floats],
) -> dict[int, Floats]:
    """Return what the reward to go adds to the advantage of the whole reward, turn by turn; empty
    without turn rewards.

    Turn t learns from ``G_t = R - sum of turn rewards before t``. All members are compared at every
    turn number. Members whose episode has ended by then enter with ``R`` less all of their turn
    rewards. At the first turn whole rewards are compared.

    Args:
        rows: the trainable rows.
        member_N: the member of each row.
        reward_M: whole rewards.
        compare: rewards (M,) -> advantages (M,).
    """
    first_M = np.unique(member_N, return_index=True)[1]
    paid_MT = paid_before([rows[i].turn_rewards for i in first_M])
    if not paid_MT.any():
        return {}
    advantage_MT = np.stack([compare(reward_M - paid_M) for paid_M in paid_MT.T], axis=1)
    bonus_MT = advantage_MT - advantage_MT[:, :1]
    return {
        i: bonus_MT[member, list(row.turn_numbers)]
        for i, (row, member) in enumerate(zip(rows, member_N))
        if bonus_MT[member].any() and row.turn_numbers
    }


def paid_before(rewards: Sequence[Sequence[float]]) -> Floats:
    """Return the sum of each member's turn rewards before turn t, (M, T)."""
    width = max(map(len, rewards), default=0)
    paid_MT = np.zeros((len(rewards), width))
    for paid_T, turns in zip(paid_MT, rewards):
        # After a member's last turn, its total stays.
        paid_T[:] = np.cumsum([0.0, *turns])[np.minimum(np.arange(width), len(turns))]
    return paid_MT


def by_token(row: Trajectory, bonus: Floats | None) -> Floats:
    """Return each turn's bonus at its learned tokens, 0 elsewhere, (T,)."""
    bonus_T = np.zeros(len(row.tokens))
    if bonus is not None:
        for (start, end), value in zip(row.turns, bonus, strict=True):
            bonus_T[start:end] = value
    return np.where(row.learned_mask, bonus_T, 0.0)
