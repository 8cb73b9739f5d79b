"""Student's t over seeds, by hand."""

import math

import pytest

from coterie.evaluation.metrics.intervals import t_interval


def test_five_seeds() -> None:
    # s = sqrt(2.5), t_4 = 2.7764: 2.7764 * 1.5811 / sqrt(5) = 1.9633
    estimate = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (estimate.value, estimate.count) == (3.0, 5)
    assert estimate.low == pytest.approx(3 - 1.9633, abs=1e-4)
    assert estimate.high == pytest.approx(3 + 1.9633, abs=1e-4)


def test_what_is_missing_is_left_out() -> None:
    assert t_interval([1.0, float("nan"), 3.0]) == t_interval([1.0, 3.0])
    single = t_interval([0.5])
    assert single.value == 0.5
    assert math.isnan(single.low)
    assert math.isnan(t_interval([]).value)
