"""Which hinted traces were rescued: right after their role had failed cold and a peer had not."""

# B traces of one question

import numpy as np
import numpy.typing as npt

COLD, HINT = 0, 1
"""Values of ``round_B``: before any hint exists, and after (whether or not a hint was shown)."""


def eligible(
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
    asked = set(role_B[cold_B].tolist())
    solved = set(role_B[cold_B & correct_B].tolist())
    if not solved:
        return np.zeros(len(correct_B), dtype=bool)
    # Somebody solved it cold; for a role that did not, that is a peer.
    failed_cold_B = np.isin(role_B, list(asked - solved))
    return (round_B == HINT) & hinted_B & failed_cold_B


def rescued(
    correct_B: npt.ArrayLike,
    hinted_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
) -> npt.NDArray[np.bool_]:
    """(B,) eligible traces that are correct: the five conditions of CoRe (arXiv:2601.21600)."""
    correct_B = np.asarray(correct_B, dtype=bool)
    return eligible(correct_B, hinted_B, role_B, round_B) & correct_B
