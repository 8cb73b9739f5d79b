"""Credit turn by turn: what was paid before a turn is no merit of it.

Legend: M members, N rows, T turns of the member that has most.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from coterie.datatypes import Trajectory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
TurnBonus = Mapping[int, Floats]
"""Place of a row -> (turns,) what is added to its advantage, for the tokens of each turn."""


def turn_bonus(
    rows: Sequence[Trajectory],
    member_N: Ints,
    reward_M: Floats,
    compare: Callable[[Floats], Floats],
) -> dict[int, Floats]:
    """What reward to go adds to the advantages of whole rewards; empty where no turn is paid.

    Turn t learns from ``G_t = R - sum of turn rewards before t``. Members are compared turn number
    by turn number; who has ended by then was paid for all turns, and is compared with the rest of
    the reward. So everybody is compared at every turn, and the first turn with whole rewards.

    Args:
        rows: all that count.
        member_N: whose row it is.
        reward_M: whole rewards.
        compare: rewards (M,) -> advantages (M,).
    """
    first_M = np.unique(member_N, return_index=True)[1]
    paid_MT = paid_before([rows[place].turn_rewards for place in first_M])
    if not paid_MT.any():
        return {}
    advantage_MT = np.stack([compare(reward_M - paid_M) for paid_M in paid_MT.T], axis=1)
    bonus_MT = advantage_MT - advantage_MT[:, :1]
    return {
        place: bonus_MT[member, list(row.turn_numbers)]
        for place, (row, member) in enumerate(zip(rows, member_N))
        if bonus_MT[member].any() and row.turn_numbers
    }


def paid_before(rewards: Sequence[Sequence[float]]) -> Floats:
    """(M, T) the sum of each member's turn rewards before turn t."""
    width = max(map(len, rewards), default=0)
    paid_MT = np.zeros((len(rewards), width))
    for paid_T, own in zip(paid_MT, rewards):
        paid_T[:] = np.cumsum([0.0, *own])[np.minimum(np.arange(width), len(own))]
    return paid_MT


def by_token(row: Trajectory, bonus: Floats | None) -> Floats:
    """(T,) the bonus of each turn at its tokens that are learned; 0 for all others."""
    bonus_T = np.zeros(len(row.tokens))
    if bonus is not None:
        for (start, end), value in zip(row.turns, bonus, strict=True):
            bonus_T[start:end] = value
    return np.where(row.learned_mask, bonus_T, 0.0)
