import numpy as np
import pytest

from coterie.evaluation.metrics.means import mean_at_n, mean_present, ratio, variance

NAN = np.nan


@pytest.mark.parametrize(
    ("scores", "between", "within"),
    [
        ([[1, 1], [0, 0]], 0.25, 0.0),  # one always right, one never
        ([[1, 0], [0, 1]], 0.0, 0.25),  # coin flips
        # mu = 1, .5: between .0625; within (0 + .25) / 2.
        ([[1, 1], [1, 0]], 0.0625, 0.125),
        # A question counts once, however many samples it has: mu = 1, 0.
        ([[1, 1, 1], [0, NAN, NAN]], 0.25, 0.0),
        # Missing samples and missing questions do not count.
        ([[1, NAN, 1], [1, 0, NAN], [NAN, NAN, NAN]], 0.0625, 0.125),
    ],
)
def test_by_hand(scores, between, within):
    parts = variance(scores)
    assert parts.between == pytest.approx(between, abs=1e-15)
    assert parts.within == pytest.approx(within, abs=1e-15)


def test_the_parts_are_the_whole():
    scores = np.random.default_rng(0).random((30, 8))
    parts = variance(scores)
    assert parts.between + parts.within == pytest.approx(scores.var(), abs=1e-12)
    mean = scores.mean()
    assert parts.between <= mean * (1 - mean)


def test_only_zero_divides_nothing():
    np.testing.assert_array_equal(ratio([1, 1, 1], [2, -2, 0]), [0.5, -0.5, NAN])


def test_means_of_what_is_there():
    assert np.isnan(mean_present([]))
    np.testing.assert_array_equal(mean_present([[1, NAN], [NAN, NAN]], axis=1), [1, NAN])
    np.testing.assert_array_equal(mean_at_n([[1, 0, NAN, 0.5], [NAN] * 4]), [0.5, NAN])
    empty = variance([[NAN]])
    assert np.isnan([empty.between, empty.within]).all()
