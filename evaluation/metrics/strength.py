"""Strength of players from their wins: the model of Bradley and Terry."""

# K players; ... leading axes, such as resamples

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats

ADDED = 0.5
"""Wins added each way for every pair that met; an undefeated player then has a finite strength."""
_STEPS = 100
_LONGEST = 4.0  # far from the optimum Newton's step overshoots


def bradley_terry(wins: npt.ArrayLike, *, added: float = ADDED) -> Floats:
    """(..., K) strengths b of mean zero under ``P(i beats j) = 1 / (1 + exp(b_j - b_i))``, those of
    the highest likelihood (Bradley and Terry 1952, Biometrika 39, 324).

    Args:
        wins: (..., K, K) how often i beat j; a draw is half a win for each.
        added: wins added both ways for each pair that met (Haldane 1956; for two players this
            removes the bias of first order, Firth 1993, Biometrika 80, 27).

    Example: of 4 games i won 3, ``b_i - b_j = ln(3.5 / 1.5)``.
    """
    wins = as_floats(wins)
    wins = wins + added * (wins + np.swapaxes(wins, -1, -2) > 0)
    players = wins.shape[-1]
    wins = wins * (1 - np.eye(players))
    games = wins + np.swapaxes(wins, -1, -2)
    b = np.zeros(wins.shape[:-1])
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(b[..., None, :] - b[..., :, None]))
        # d log L / d b_i = sum_j (wins_ij - games_ij p_ij); below, its negative derivative
        slope = (wins - games * expected).sum(axis=-1)
        weight = games * expected * (1 - expected)
        curvature = np.eye(players) * weight.sum(axis=-1)[..., None] - weight
        # Only differences of b matter, so the matrix is singular: 1 / players makes it regular, and
        # 1e-6 covers a player who met nobody.
        regular = curvature + 1 / players + 1e-6 * np.eye(players)
        step = np.linalg.solve(regular, slope[..., None])[..., 0]
        largest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
        b = b + step * np.minimum(1, _LONGEST / np.maximum(largest, 1e-300))
        if (largest < 1e-10).all():
            break
    return b - b.mean(axis=-1, keepdims=True)
