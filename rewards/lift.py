"""What a hint changed for those who saw it: an extension of ours, not in the paper."""

# B traces of one question

from typing import Literal

import numpy as np
import numpy.typing as npt

from rewards.rescue import COLD, HINT

HintOutcome = Literal["helped", "hurt", "neutral"]


def hint_lift(
    correct_B: npt.ArrayLike,
    hinted_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
) -> npt.NDArray[np.float64]:
    """(B,) correctness of each hinted trace less its role's share of correct cold traces.

    NaN where no hint was shown or the role has no cold trace to compare with.
    """
    correct_B = np.asarray(correct_B, dtype=np.float64)
    role_B, round_B = np.asarray(role_B), np.asarray(round_B)
    shown_B = np.asarray(hinted_B, dtype=bool) & (round_B == HINT)
    lift_B = np.full(len(correct_B), np.nan)
    for role in np.unique(role_B[shown_B]):
        cold_B = (role_B == role) & (round_B == COLD)
        if cold_B.any():
            seen_B = shown_B & (role_B == role)
            lift_B[seen_B] = correct_B[seen_B] - correct_B[cold_B].mean()
    return lift_B


def hint_outcomes(lift_B: npt.NDArray[np.float64]) -> list[HintOutcome | None]:
    """The sign of each lift in words; None where there is none."""
    words: dict[float, HintOutcome] = {1.0: "helped", -1.0: "hurt", 0.0: "neutral"}
    return [words.get(sign) for sign in np.sign(lift_B).tolist()]


def teacher_lift(
    correct_B: npt.ArrayLike,
    hinted_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
    teacher: int,
) -> float:
    """Mean lift over the hinted traces of all roles but that of the trace ``teacher``, in [-1, 1].

    0 where nobody else saw the hint: such a teacher is neither paid nor fined.
    """
    role_B = np.asarray(role_B)
    lift_B = hint_lift(correct_B, hinted_B, role_B, round_B)
    counted_B = (role_B != role_B[teacher]) & ~np.isnan(lift_B)
    return float(lift_B[counted_B].mean()) if counted_B.any() else 0.0
