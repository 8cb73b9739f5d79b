"""Confidence rewards against numbers computed by hand, and what each of them is best at."""

import numpy as np
import pytest
from scipy.stats import binom

from coterie.rewards.confidence import confidence_reward, target

NAN = float("nan")


@pytest.mark.parametrize(
    ("measure", "p", "y", "reward"),
    [
        ("l1", 1, 1, 0.0), ("l1", 1, 0, -1.0), ("l1", 0, 1, -1.0), ("l1", 0.75, 0.8, -0.05),
        ("l1", 0.75, 1, -0.25), ("l2", 0.75, 0.8, -0.0025), ("l2", 0.75, 1, -0.0625),
        # ln .001 = -6.907755; (.75 ln .8 + .25 ln .2) / ln .001 = (.167358 + .402359) / 6.907755
        ("kl", 0.75, 0.8, -0.082475), ("kl", 0.75, 0.75, -0.081406),
        ("kl", 0.5, 0.5, -0.100343), ("kl", 0.875, 0.875, -0.054543),
        # 1 - y is raised to epsilon: .25 * 1
        ("kl", 0.75, 1, -0.25), ("kl", 0.875, 1, -0.125),
        # Equation 5 as it is printed would pay the second of these most.
        ("kl", 1, 1, 0.0), ("kl", 1, 0, -1.0), ("kl", 0, 1, -1.0), ("kl", 0, 0, 0.0),
    ],
)  # fmt: skip
def test_hand_derived(measure, p, y, reward):
    (got,) = confidence_reward([y], [p], measure)
    assert got == pytest.approx(reward, abs=5e-7)


@pytest.mark.parametrize("measure", ["l1", "l2", "kl"])
def test_silence_is_never_better_than_a_bad_number(measure):
    got = confidence_reward([NAN, 0.0, 1.0], [1.0, 1.0, 0.0], measure)
    assert got.tolist() == [-1.0, -1.0, -1.0]


@pytest.mark.parametrize("measure", ["l2", "kl"])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.83, 0.95])
def test_proper_measures_are_best_at_the_probability_itself(measure, p):
    grid = np.linspace(0, 1, 1001)
    # The target of a sample is 1 with probability p.
    right = confidence_reward(grid, np.ones(1001), measure)
    wrong = confidence_reward(grid, np.zeros(1001), measure)
    assert grid[np.argmax(p * right + (1 - p) * wrong)] == pytest.approx(p, abs=1e-3)
    shared = confidence_reward(grid, np.full(1001, p), measure)
    assert grid[np.argmax(shared)] == pytest.approx(p, abs=1e-3)


@pytest.mark.parametrize(
    ("n", "p", "best"),
    [
        (8, 0.05, 0.0), (8, 0.1, 0.125), (8, 0.3, 0.25), (8, 0.5, 0.5), (8, 0.7, 0.75),
        (8, 0.8, 0.875), (8, 0.95, 1.0), (4, 0.1, 0.0), (4, 0.2, 0.25), (4, 0.9, 1.0),
        (16, 0.05, 0.0625), (16, 0.95, 0.9375),
    ],
)  # fmt: skip
def test_group_l1_is_best_at_the_median_of_the_group_rate(n, p, best):
    grid = np.linspace(0, 1, 1601)
    rates, weights = np.arange(n + 1) / n, binom.pmf(np.arange(n + 1), n, p)
    expected = sum(
        weight * confidence_reward(grid, np.full(1601, rate), "l1")
        for rate, weight in zip(rates, weights)
    )
    assert grid[np.argmax(expected)] == pytest.approx(best, abs=1e-9)


def test_sample_l1_is_best_at_the_ends():
    grid = np.linspace(0, 1, 101)
    for p, best in ((0.4, 0.0), (0.6, 1.0)):
        expected = p * confidence_reward(grid, np.ones(101), "l1")
        expected += (1 - p) * confidence_reward(grid, np.zeros(101), "l1")
        assert grid[np.argmax(expected)] == best


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("group", [0.25, 0.25, 0.25, 0.25]),
        # 0 of 3 for the right one, 1 of 3 for the others
        ("leave-one-out", [0, 1 / 3, 1 / 3, 1 / 3]),
        # (1 + 1) / (4 + 2)
        ("shrunk", [1 / 3] * 4),
        ("sample", [1, 0, 0, 0]),
        ("mix", [0.625, 0.125, 0.125, 0.125]),
    ],
)
def test_targets(kind, expected):
    assert target([1, 0, 0, 0], kind) == pytest.approx(expected)
    assert target([], kind).tolist() == []
    # A single trace has no others.
    assert target([1.0], "leave-one-out").tolist() == [1.0]
