import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from coterie.evaluation.metrics.calibration import (
    bin_index,
    brier,
    expected_calibration_error,
    output_ratio,
)

NAN = np.nan
CONFIDENCE = np.array([0, 0.05, 0.1, 0.35, 0.3, 0.8, 0.8, 0.9, 1, 1])
CORRECT = np.array([0, 0, 1, 0, 1, 1, 0, 1, 1, 1])


def test_binning_in_integers():
    assert bin_index([0.3, 0.6, 0.7]).tolist() == [3, 6, 7]
    assert bin_index([0, 0.1, 0.0999, 0.95, 1]).tolist() == [0, 1, 0, 9, 9]
    assert bin_index([0, 0.1, 0.1001, 0.3, 1], closed="right").tolist() == [0, 0, 1, 2, 9]
    assert 1 - 0.9 < 0.1  # said as .1, stored a rounding error below it
    assert bin_index([1 - 0.9]).tolist() == [1]
    assert bin_index([0.5, 1 / 3], bins=15).tolist() == [7, 4]
    with pytest.raises(ValueError, match="lie in"):
        bin_index([1.2])
    with pytest.raises(ValueError, match="lie in"):
        bin_index([NAN])


def test_both_closures_on_ten_points():
    # [a, b): {0 .05 | 0 0}, {.1 | 1}, {.35 .3 | 0 1}, {.8 .8 | 1 0}, {.9 1 1 | 1 1 1}
    # gaps .05 + .9 + .35 + .6 + .1 = 2.0 of 10.
    assert expected_calibration_error(CONFIDENCE, CORRECT) == pytest.approx(0.200, abs=1e-12)
    # (a, b]: {0 .05 .1 | 0 0 1} .85, {.3 | 1} .7, {.35 | 0} .35, {.8 .8} .6, {.9 | 1} .1, {1 1} 0.
    right = expected_calibration_error(CONFIDENCE, CORRECT, closed="right")
    assert right == pytest.approx(0.260, abs=1e-12)


def test_silence():
    confidence = np.append(CONFIDENCE, [NAN, NAN])
    correct = np.append(CORRECT, [1, 0])
    assert expected_calibration_error(confidence, correct) == pytest.approx(0.2, abs=1e-12)
    # As zeros they join the first bin: gap |.05 - 1| = .95, so 2.9 of 12.
    silent = expected_calibration_error(confidence, correct, missing="zero")
    assert silent == pytest.approx(2.9 / 12, abs=1e-12)
    assert output_ratio(confidence) == 10 / 12
    assert np.isnan(expected_calibration_error([NAN], [1]))
    assert np.isnan(brier([NAN], [1]))
    # Nor does an answer without a verdict count: |.75 - 1|.
    assert expected_calibration_error([0.75, 0.5], [1, NAN]) == 0.25
    with pytest.raises(ValueError, match="correctness values"):
        brier([0.5], [1, 0])


def test_brier():
    assert brier(CONFIDENCE, CORRECT) == pytest.approx(0.2115, abs=1e-12)
    assert brier(CONFIDENCE, CORRECT) == pytest.approx(brier_score_loss(CORRECT, CONFIDENCE))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=1),
    st.integers(1, 20),
)
def test_identities(pairs, bins):
    confidence, correct = np.array(pairs, dtype=float).T
    order = np.random.default_rng(len(pairs)).permutation(len(pairs))
    overall = abs(confidence.mean() - correct.mean())
    for metric in (
        lambda p, y: expected_calibration_error(p, y, bins=bins),
        lambda p, y: expected_calibration_error(p, y, bins=bins, closed="right"),
    ):
        value = metric(confidence, correct)
        assert overall - 1e-12 <= value <= 1
        assert metric(confidence[order], correct[order]) == pytest.approx(value, abs=1e-12)
    one_bin = expected_calibration_error(confidence, correct, bins=1)
    assert one_bin == pytest.approx(overall, abs=1e-12)
