"""Rewards for the strategies inside one trace (SD-E2, arXiv:2601.17982).

Constants and the greedy count follow the authors' public code; each function notes what the code
leaves open.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coterie.rewards.exploration import cosines

# B traces of one question, S strategies of one trace, D dimensions of an embedding

_ROUNDING = 1e-9


def diversity(embeddings_SD: npt.ArrayLike) -> float:
    """1 minus the mean cosine of all pairs, within [0, 1]; 1 for one strategy, 0 for none."""
    cosine_SS = cosines(embeddings_SD)
    count = len(cosine_SS)
    if count < 2:
        return float(count)
    # 1 - 2 / (S (S - 1)) sum_{i < j} cos(e_i, e_j)
    mean = float(cosine_SS[np.triu_indices(count, k=1)].mean())
    return min(1.0, max(0.0, 1.0 - mean))


def count_distinct(embeddings_SD: npt.ArrayLike, same_above: float) -> int:
    """Number of strategies without those whose cosine with an earlier distinct one is above
    ``same_above``."""
    cosine_SS = cosines(embeddings_SD)
    distinct: list[int] = []
    for index in range(len(cosine_SS)):
        if not (cosine_SS[index, distinct] > same_above).any():
            distinct.append(index)
    return len(distinct)


def strategy_exploration(
    right_S: Sequence[bool],
    embeddings_SD: npt.ArrayLike,
    *,
    correct: float,
    rate: float,
    cap: float,
    same_above: float,
) -> float:
    """``correct`` if any strategy is right, else ``min(cap, rate * distinct * diversity)``.

    ``embeddings_SD`` may hold fewer rows than there are strategies: a strategy without reasoning
    does not count towards diversity.
    """
    if any(right_S):
        return correct
    return min(cap, rate * count_distinct(embeddings_SD, same_above) * diversity(embeddings_SD))


def strategy_exploitation(right_S: Sequence[bool]) -> float:
    """Share of the strategies that are right; 0 without any.

    The paper speaks of the efficiency of the solution, the public code names the term and its
    weight alone; the share is our reading.
    """
    return sum(right_S) / len(right_S) if right_S else 0.0


def strategy_format(
    strategies: int,
    answered: bool,
    complete: bool,
    *,
    per_strategy: float,
    for_answer: float,
    for_completeness: float,
) -> float:
    """``per_strategy`` for each, ``for_answer`` if an answer follows them, and
    ``for_completeness`` if no part of them is missing."""
    return per_strategy * strategies + for_answer * answered + for_completeness * complete


def z_score(values_B: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """(B,) distance from the mean in population standard deviations; zeros where all are equal."""
    values_B = np.asarray(values_B, dtype=np.float64)
    if not len(values_B) or np.ptp(values_B) <= _ROUNDING:
        return np.zeros(len(values_B))
    return (values_B - values_B.mean()) / values_B.std()
