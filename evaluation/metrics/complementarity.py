"""How far the errors of two roles differ, computed from p1, p2 and p12."""

# Q questions, R resamples

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats, mean_present, ratio


@dataclass(frozen=True)
class Complementarity:
    """Shares of questions, each a scalar array or one value a resample.

    Example: ``complementarity(.9295, .9333, .9295 * .9333)`` has ``union`` .9953 and ``phi`` 0.
    """

    union: Floats
    """p1 + p2 - p12 (CoRe, arXiv:2601.21600, Thm 4.1): the team."""
    gain: Floats
    """Union less the better role: the weaker right where the stronger is wrong."""
    gain_bound: Floats
    """The gain lies between 0 and this: min(weaker, 1 - stronger)."""
    both_wrong: Floats
    """1 - union; also called double fault."""
    independent_union: Floats
    """1 - (1-p1)(1-p2): the union of unrelated errors at the same accuracies."""
    phi: Floats
    """Correlation of the two correctness indicators; NaN where a role is always right or wrong."""


def complementarity(p1: npt.ArrayLike, p2: npt.ArrayLike, p12: npt.ArrayLike) -> Complementarity:
    """How the errors of two roles differ.

    Args:
        p1: accuracy of the first role.
        p2: accuracy of the second role.
        p12: share of the questions that both solve.

    Elementwise, so that resampled means give resampled statistics.
    """
    p1, p2, p12 = as_floats(p1), as_floats(p2), as_floats(p12)
    stronger, weaker = np.maximum(p1, p2), np.minimum(p1, p2)
    # phi = (p12 - p1 p2) / sqrt(p1 (1-p1) p2 (1-p2))
    spread = np.sqrt(np.maximum(p1 * (1.0 - p1) * p2 * (1.0 - p2), 0.0))
    return Complementarity(
        union=p1 + p2 - p12,
        gain=weaker - p12,
        gain_bound=np.minimum(weaker, 1.0 - stronger),
        both_wrong=1.0 - p1 - p2 + p12,
        independent_union=1.0 - (1.0 - p1) * (1.0 - p2),
        phi=ratio(p12 - p1 * p2, spread),
    )


def joint_table(first_Q: npt.ArrayLike, second_Q: npt.ArrayLike) -> Floats:
    """(Q, 3) columns C1, C2 and C1 C2, NaN where either is missing; their means (or resampled
    means) are what :func:`complementarity` takes.

    For rates in [0, 1] the product is the chance that both are right, as samples of two roles are
    independent given the question.
    """
    first_Q, second_Q = as_floats(first_Q), as_floats(second_Q)
    both_Q = first_Q * second_Q
    missing_Q = np.isnan(both_Q)
    table_Q3 = np.stack([first_Q, second_Q, both_Q], axis=1)
    table_Q3[missing_Q] = np.nan
    return table_Q3


def compare(first_Q: npt.ArrayLike, second_Q: npt.ArrayLike) -> Complementarity:
    """:func:`complementarity` of the questions that both roles have."""
    return complementarity(*mean_present(joint_table(first_Q, second_Q), axis=0))
