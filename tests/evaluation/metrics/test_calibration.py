import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

from coterie.evaluation.metrics.calibration import (
    Discreteness,
    adaptive_calibration_error,
    bin_index,
    brier,
    discreteness,
    expected_calibration_error,
    kolmogorov_smirnov_error,
    murphy,
    negative_log_likelihood,
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
    assert np.isnan(kolmogorov_smirnov_error([NAN], [1]))
    assert np.isnan(murphy([], []).uncertainty)
    with pytest.raises(ValueError, match="correctness values"):
        brier([0.5], [1, 0])


def test_adaptive_bins():
    # Two bins of two: {.1 .2 | 1 0} gap .7, {.6 .9 | 1 1} gap .5, of 4.
    value = adaptive_calibration_error([0.9, 0.1, 0.6, 0.2], [1, 1, 1, 0], bins=2)
    assert value == pytest.approx(1.2 / 4, abs=1e-12)
    # Ties across a border count with their mean, whatever their order: each bin 1 of .5 + .5.
    for correct in ([1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1]):
        value = adaptive_calibration_error([0.5] * 4, correct, bins=2)
        assert value == pytest.approx(0, abs=1e-12)


def test_without_bins():
    # Sorted: gaps -.2, +.4 (.6 right), -.9 (.9 wrong): sums -.2, .2, -.7; of 3.
    value = kolmogorov_smirnov_error([0.9, 0.2, 0.6], [0, 0, 1])
    assert value == pytest.approx(0.7 / 3, abs=1e-12)


def test_brier_and_likelihood():
    assert brier(CONFIDENCE, CORRECT) == pytest.approx(0.2115, abs=1e-12)
    assert brier(CONFIDENCE, CORRECT) == pytest.approx(brier_score_loss(CORRECT, CONFIDENCE))
    clipped = np.clip(CONFIDENCE, 1e-3, 1 - 1e-3)
    value = negative_log_likelihood(CONFIDENCE, CORRECT)
    assert value == pytest.approx(log_loss(CORRECT, clipped), abs=1e-12)
    # Certain and wrong: -ln(.001).
    assert negative_log_likelihood([1.0], [0]) == pytest.approx(6.907755, abs=1e-6)


def test_murphy_by_hand():
    # .25 said twice (0, 1 right of 2), .75 twice (2 of 2): reliability (.25^2 + .25^2) / 2;
    # accuracies .5 and 1 around .75: resolution .0625; uncertainty .75 * .25.
    parts = murphy([0.25, 0.25, 0.75, 0.75], [0, 1, 1, 1])
    assert vars(parts) == pytest.approx(
        {"reliability": 0.0625, "resolution": 0.0625, "uncertainty": 0.1875}, abs=1e-15
    )


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=1),
    st.integers(1, 20),
)
def test_identities(pairs, bins):
    confidence, correct = np.array(pairs, dtype=float).T
    parts = murphy(confidence, correct)
    whole = parts.reliability - parts.resolution + parts.uncertainty
    assert whole == pytest.approx(brier(confidence, correct), abs=1e-12)
    order = np.random.default_rng(len(pairs)).permutation(len(pairs))
    overall = abs(confidence.mean() - correct.mean())
    for metric in (
        lambda p, y: expected_calibration_error(p, y, bins=bins),
        lambda p, y: expected_calibration_error(p, y, bins=bins, closed="right"),
        lambda p, y: adaptive_calibration_error(p, y, bins=bins),
        kolmogorov_smirnov_error,
    ):
        value = metric(confidence, correct)
        assert overall - 1e-12 <= value <= 1
        assert metric(confidence[order], correct[order]) == pytest.approx(value, abs=1e-12)
    one_bin = expected_calibration_error(confidence, correct, bins=1)
    assert one_bin == pytest.approx(overall, abs=1e-12)


def test_how_discrete():
    # 0, 1, 1, .5: shares 1/4, 1/2, 1/4; entropy ln(4)/2 + ln(2)/2.
    measured = discreteness([0, 1, 1, 0.5, NAN])
    assert measured.distinct == 3
    assert measured.entropy == pytest.approx(1.5 * np.log(2), abs=1e-12)
    assert measured.extreme_share == 0.75
    assert discreteness([0.5, 0.5]) == Discreteness(1, 0.0, 0.0)
    assert np.isnan(discreteness([NAN]).entropy)
