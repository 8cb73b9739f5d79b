import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from coterie.evaluation.metrics.discrimination import auroc, within_question_auroc

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
