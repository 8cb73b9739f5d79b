import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from coterie.evaluation.metrics.discrimination import (
    accuracy_at_coverage,
    area_under_risk_coverage,
    auroc,
    risk_coverage,
    within_question_auroc,
)

NAN = np.nan


def test_ten_points():
    confidence = [0, 0.05, 0.1, 0.35, 0.3, 0.8, 0.8, 0.9, 1, 1]
    correct = [0, 0, 1, 0, 1, 1, 0, 1, 1, 1]
    # Right .1 .3 .8 .9 1 1 against wrong 0 .05 .35 .8: 2 + 2 + 3.5 + 4 + 4 + 4 of 24.
    assert auroc(confidence, correct) == 19.5 / 24 == 0.8125


def test_one_class_and_ties():
    assert np.isnan(auroc([0.2, 0.9], [1, 1]))
    assert np.isnan(auroc([], []))
    assert auroc([0.7] * 5, [1, 0, 1, 0, 0]) == 0.5
    # Silence is left out: .9 > .1 remains.
    assert auroc([0.9, 0.1, NAN], [1, 0, 0]) == 1.0


def test_against_scikit_learn():
    random = np.random.default_rng(0)
    for _ in range(20):
        confidence, correct = random.integers(0, 6, 40) / 5, random.random(40) < 0.4
        assert auroc(confidence, correct) == pytest.approx(
            roc_auc_score(correct, confidence), abs=1e-12
        )


def test_within_questions():
    # An easy question, all right and sure; a hard one with .2 right, .4 and .1 wrong: 1 of 2
    # pairs; one whose right answer is surer than its wrong one: 1 of 1.
    confidence = [[0.9, 0.9, 0.9], [0.2, 0.4, 0.1], [0.6, 0.5, NAN]]
    correct = [[1, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert within_question_auroc(confidence, correct) == 2 / 3
    # Pooled over questions the same numbers look better: difficulty is told apart.
    assert auroc(np.ravel(confidence), np.ravel(correct)) == pytest.approx(13 / 15, abs=1e-12)
    assert np.isnan(within_question_auroc([[0.5]], [[1]]))


CONFIDENCE = [0.2, 0.9, np.nan, 0.9, 0.5]
CORRECT = [0, 1, 0, 0, 1]


def test_risk_by_hand():
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


def test_risk_of_nothing():
    assert np.isnan(area_under_risk_coverage([], []))
    assert np.isnan(accuracy_at_coverage([], []))
