"""What a correct trace earns by how many others were correct."""

# B traces of one question

from typing import Literal

import numpy as np
import numpy.typing as npt

from vocabulary import UserError

TraceAccuracyMode = Literal["v1", "v2"]


def trace_accuracy(
    correct_B: npt.ArrayLike, round_B: npt.ArrayLike, mode: TraceAccuracyMode
) -> npt.NDArray[np.float64]:
    """(B,) unweighted ``c rho`` (``v1``, pays easy questions) or ``c (1 - rho)`` (``v2``, pays rare
    successes), where ``rho`` is the mean correctness of all roles' traces of the same round (CoRe,
    arXiv:2601.21600, eq. 5 of its two versions)."""
    if mode not in ("v1", "v2"):
        raise UserError(f"Unknown trace accuracy mode {mode!r}; choose v1 or v2.")
    correct_B = np.asarray(correct_B, dtype=np.float64)
    round_B = np.asarray(round_B)
    rate_B = np.zeros(len(correct_B))
    for a_round in np.unique(round_B):
        rate_B[round_B == a_round] = correct_B[round_B == a_round].mean()
    return correct_B * (rate_B if mode == "v1" else 1.0 - rate_B)
