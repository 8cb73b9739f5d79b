"""The effect of a hint: rescued traces, and the change in the share of right ones.

A rescue is right after its role had failed cold and a peer had not (CoRe, arXiv:2601.21600). The
lift is an extension of ours, not in the paper.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

# B traces of one question

HintOutcome = Literal["helped", "hurt", "neutral"]

COLD, HINT = 0, 1
"""Values of ``round_B``: before any hint exists, and after (whether or not a hint was shown)."""


def rescue_candidates(
    correct_B: npt.ArrayLike,
    hinted_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
) -> npt.NDArray[np.bool_]:
    """(B,) traces that can be rescues: the denominator of the rescue rate.

    They belong to the hint round, really saw a hint, all cold traces of their role (at least one)
    failed, and another role had a correct cold trace. Success is read from the recorded cold
    traces, never from what a caller claims.
    """
    correct_B = np.asarray(correct_B, dtype=bool)
    hinted_B = np.asarray(hinted_B, dtype=bool)
    role_B, round_B = np.asarray(role_B), np.asarray(round_B)
    if not np.isin(round_B, (COLD, HINT)).all():
        raise ValueError(f"rounds are {COLD} (cold) and {HINT} (hint), not {set(round_B.tolist())}")
    cold_B = round_B == COLD
    cold_roles = set(role_B[cold_B].tolist())
    solved = set(role_B[cold_B & correct_B].tolist())
    if not solved:
        return np.zeros(len(correct_B), dtype=bool)
    # Somebody solved it cold; for a role that did not, that is a peer.
    failed_cold_B = np.isin(role_B, list(cold_roles - solved))
    return (round_B == HINT) & hinted_B & failed_cold_B


def rescues(
    correct_B: npt.ArrayLike,
    hinted_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
) -> npt.NDArray[np.bool_]:
    """(B,) eligible traces that are correct: the five conditions of CoRe (arXiv:2601.21600)."""
    correct_B = np.asarray(correct_B, dtype=bool)
    return rescue_candidates(correct_B, hinted_B, role_B, round_B) & correct_B


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
