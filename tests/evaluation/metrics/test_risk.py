import numpy as np
import pytest

from coterie.evaluation.metrics.discrimination import (
    accuracy_at_coverage,
    area_under_risk_coverage,
    risk_coverage,
)

CONFIDENCE = [0.2, 0.9, np.nan, 0.9, 0.5]
CORRECT = [0, 1, 0, 0, 1]


def test_by_hand():
    # .9 .9 (one of two wrong), .5 right, .2 wrong, silence wrong: expected errors .5 1 1 2 3.
    coverage, risk = risk_coverage(CONFIDENCE, CORRECT)
    np.testing.assert_allclose(coverage, [0.2, 0.4, 0.6, 0.8, 1.0], atol=1e-12)
    np.testing.assert_allclose(risk, [0.5, 0.5, 1 / 3, 0.5, 0.6], rtol=0, atol=1e-12)
    wanted = (0.5 + 0.5 + 1 / 3 + 0.5 + 0.6) / 5
    assert area_under_risk_coverage(CONFIDENCE, CORRECT) == pytest.approx(wanted, abs=1e-12)
    assert accuracy_at_coverage(CONFIDENCE, CORRECT) == pytest.approx(0.5, abs=1e-12)
    assert accuracy_at_coverage(CONFIDENCE, CORRECT, 0.6) == pytest.approx(2 / 3, abs=1e-12)
    assert accuracy_at_coverage(CONFIDENCE, CORRECT, 0.01) == pytest.approx(0.5, abs=1e-12)


def test_what_nobody_judged_is_left_out():
    judged, missing = ([0.9, 0.3], [1, 0]), ([0.9, 0.5, 0.3], [1, np.nan, 0])
    assert area_under_risk_coverage(*missing) == area_under_risk_coverage(*judged) == 0.25
    assert accuracy_at_coverage(*missing) == accuracy_at_coverage(*judged) == 1.0
    assert np.isnan(area_under_risk_coverage([0.9], [np.nan]))


def test_ties_are_expectations_over_orders():
    random = np.random.default_rng(0)
    confidence, correct = random.integers(0, 4, 12) / 4, random.random(12) < 0.5
    _, expected = risk_coverage(confidence, correct)
    drawn = np.zeros(12)
    for _ in range(4000):
        order = np.lexsort((random.random(12), -confidence))
        drawn += np.cumsum(~correct[order]) / np.arange(1, 13) / 4000
    # The first place has sd .5 / sqrt(4000) = .008 at most.
    np.testing.assert_allclose(drawn, expected, rtol=0, atol=0.035)


def test_nothing():
    assert np.isnan(area_under_risk_coverage([], []))
    assert np.isnan(accuracy_at_coverage([], []))
