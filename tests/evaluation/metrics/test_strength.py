"""Strengths against numbers by hand, and against another optimizer."""

import numpy as np
import pytest
from scipy.optimize import minimize

from coterie.evaluation.metrics.strength import bradley_terry


def test_by_hand() -> None:
    # Two players, 3 : 1: the odds are the wins' ratio, here with half a win added each way.
    strengths = bradley_terry([[0, 3], [1, 0]])
    assert strengths[0] - strengths[1] == pytest.approx(np.log(3.5 / 1.5))
    assert bradley_terry([[0, 3], [1, 0]], added=0) == pytest.approx(
        [np.log(3) / 2, -np.log(3) / 2]
    )
    # Strengths 4 : 2 : 1 win 4 of 6, 4 of 5 and 2 of 3: what fits exactly is found exactly.
    wins = [[0, 4, 4], [2, 0, 2], [1, 1, 0]]
    assert bradley_terry(wins, added=0) == pytest.approx([np.log(2), 0, -np.log(2)])
    # Draws are half a win each: nobody is stronger.
    assert bradley_terry([[0, 5], [5, 0]]) == pytest.approx([0, 0])


def test_who_wins_everything_is_finite() -> None:
    # Half a win added: 100.5 to 0.5.
    strengths = bradley_terry([[0, 100], [0, 0]])
    assert strengths[0] - strengths[1] == pytest.approx(np.log(201))
    many = bradley_terry(np.triu(np.full((6, 6), 1e4), 1))
    assert np.isfinite(many).all()
    assert (np.diff(many) < 0).all()


def test_far_from_the_optimum_steps_are_bounded() -> None:
    wins = np.array(
        [
            [0, 1000, 100, 1, 0, 10000],
            [10000, 0, 0, 0, 1000, 0],
            [0, 0, 0, 0, 10000, 100],
            [0, 0, 1, 0, 0, 10],
            [1, 0, 0, 10000, 0, 1],
            [0, 0, 0, 0, 0, 0],
        ]
    )
    strengths = bradley_terry(wins)
    chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    met = wins + 0.5 * (wins + wins.T > 0)
    # Where the likelihood is highest, every player wins as often as is expected.
    expected = ((met + met.T) * chance).sum(axis=1)
    assert expected == pytest.approx(met.sum(axis=1), abs=1e-3)


def test_who_met_nobody_is_average() -> None:
    strengths = bradley_terry([[0, 3, 0], [1, 0, 0], [0, 0, 0]])
    assert strengths == pytest.approx([np.log(3.5 / 1.5) / 2, -np.log(3.5 / 1.5) / 2, 0], abs=1e-6)


def test_an_independent_optimizer_agrees() -> None:
    random = np.random.default_rng(0)
    wins_RKK = random.integers(0, 30, (20, 5, 5)) + random.choice([0, 0.5], (20, 5, 5))
    strength_RK = bradley_terry(wins_RKK)
    for wins_KK, strength_K in zip(wins_RKK, strength_RK):
        given_KK = (wins_KK + 0.5) * (1 - np.eye(5))

        def loss(b_K: np.ndarray, given_KK: np.ndarray = given_KK) -> float:
            return float((given_KK * np.logaddexp(0, b_K[None, :] - b_K[:, None])).sum())

        best_K = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-9}).x
        assert strength_K == pytest.approx(best_K - best_K.mean(), abs=1e-5)
