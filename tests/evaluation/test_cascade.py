"""Cascades from stored responses: numbers by hand, and against the point functions."""

import numpy as np
import pytest

from coterie.envs.corea_deferral.evaluation import EVALUATION
from coterie.evaluation.cascade import (
    Cascade,
    Deferral,
    ScoredResponses,
    ThresholdChoice,
    measure,
    scored_responses,
)
from coterie.evaluation.metrics.calibration import (
    calibration_columns,
    calibration_error,
    expected_calibration_error,
)
from coterie.evaluation.metrics.deferral import choose_threshold, deferral_curve
from coterie.evaluation.metrics.discrimination import auroc, discrimination, discrimination_columns

NAN = float("nan")


def table(confidence, correct_small, correct_large):
    """One response a question; the small model's cost 30, the large model's 60."""
    shape = (len(confidence), 1)
    small = ScoredResponses(
        np.reshape(correct_small, shape).astype(float),
        np.reshape(confidence, shape).astype(float),
        np.full(shape, 30.0),
    )
    large = ScoredResponses(
        np.reshape(correct_large, shape).astype(float), np.full(shape, 0.9), np.full(shape, 60.0)
    )
    return Cascade(small, large, small.confidence_QS)


@pytest.fixture
def cascade():
    return table([0.9, 0.8, NAN, 0.2], [1, 0, 0, 1], [1, 1, 1, 0])


def test_measured_by_hand(cascade):
    # At .5 the third (silent) and the fourth are deferred: right are 1, not 2, 3, not 4.
    deferred = cascade.defer(np.full(4, 0.5))
    assert deferred[:, 0].tolist() == [False, False, True, True]
    metrics = {
        name: metric.value
        for name, metric in measure(Deferral(cascade, deferred), resamples=5, seed=0).items()
    }
    assert metrics["accuracy_small"] == 0.5
    assert metrics["accuracy_large"] == 0.75
    assert metrics["accuracy"] == 0.5
    assert metrics["deferred"] == 0.5
    # (30 + 30 + 90 + 90) / 4 = 60, as much as the large model alone
    assert metrics["cost"] == 60
    assert metrics["saving"] == 0
    assert metrics["loss"] == 0.25
    # Of four the third was made right, and the fourth wrong.
    assert (metrics["helped"], metrics["harmed"]) == (0.25, 0.25)
    # .5 - (.5 + .5 * .25)
    assert metrics["random_gain"] == pytest.approx(-0.125)
    assert metrics["output_ratio"] == 0.75
    # Pairs (right, wrong) among the stated: (.9, .8) won, (.2, .8) lost.
    assert metrics["auroc"] == 0.5
    # Bins 9, 8, 2: (|1 - .9| + |0 - .8| + |1 - .2|) / 3
    assert metrics["ece"] == pytest.approx(1.7 / 3)


def test_the_threshold_itself_keeps(cascade):
    assert cascade.defer(np.full(4, 0.8))[:, 0].tolist() == [False, False, True, True]
    assert cascade.defer(np.full(4, 0.9))[:, 0].tolist() == [False, True, True, True]
    assert cascade.defer(np.full(4, 1.1)).all()


def test_a_share_of_questions_can_be_deferred_by_lot(cascade):
    metrics = measure(Deferral(cascade, np.full((4, 1), 0.4)), resamples=2, seed=0)
    # .5 + .4 * (.75 - .5): what random deferral is worth, so no gain over it.
    assert metrics["accuracy"].value == pytest.approx(0.6)
    assert metrics["random_gain"].value == pytest.approx(0)


def test_who_answers_alone_and_what_comes_before(cascade):
    routed = Cascade(cascade.small, cascade.large, cascade.score_QS, 7.0, small_always=False)
    assert routed.kept_cost_QS[0, 0] == 37
    assert routed.deferred_cost_QS[0, 0] == 67
    assert routed.of(np.array([True, False, False, False])).kept_cost_QS.shape == (1, 1)


def test_thresholds_of_a_half_come_from_the_other_half():
    # Even questions want a threshold above .3, odd ones above .6.
    cascade = table(
        [0.3, 0.6, 0.7, 0.9, 0.3, 0.6, 0.7, 0.9],
        [0, 0, 1, 1, 0, 0, 1, 1],
        [1] * 8,
    )
    got = cascade.thresholds(ThresholdChoice("accuracy", accuracy_loss=0.0))
    assert ((got > 0.6) & (got <= 0.9))[0::2].all()
    assert ((got > 0.3) & (got <= 0.7))[1::2].all()
    together = cascade.thresholds(ThresholdChoice("accuracy", accuracy_loss=0.0, on_test=True))
    assert len(set(together)) == 1


def test_threshold_sources():
    confidence = np.array([0.1, 0.4, 0.6, 0.9])
    curve = deferral_curve(confidence, [0, 0, 1, 1], [1, 1, 1, 1], np.ones(4), np.full(4, 2.0))

    def chosen(curve, *choice, **bounds):
        return choose_threshold(curve, ThresholdChoice(*choice, **bounds), 2.0)

    assert chosen(curve, "fixed", fixed=0.3) == 0.3
    assert chosen(curve, "large-pass@1") == 1.0
    # No loss needs both wrong ones deferred and nobody else: between .4 and .6.
    assert 0.4 < chosen(curve, "accuracy", accuracy_loss=0.0) <= 0.6
    # A quarter may be lost: one wrong one is kept.
    assert 0.1 < chosen(curve, "accuracy", accuracy_loss=0.25) <= 0.4
    # Cost 1 + 2 * deferred share: 1.5 pays for one of four.
    assert 0.1 < chosen(curve, "cost", cost_share=0.75) <= 0.4
    # Nothing is that cheap, and nothing that good: the nearest.
    assert chosen(curve, "cost", cost_share=0.1) == 0.0
    worse = deferral_curve(confidence, [1, 1, 1, 1], [0, 0, 1, 1], np.ones(4), np.ones(4))
    assert chosen(worse, "accuracy", accuracy_loss=-1.0) <= 0.1


def test_column_sums_give_the_metrics_of_the_responses():
    random = np.random.default_rng(0)
    confidence = np.round(random.random((60, 3)), 1)
    confidence[random.random((60, 3)) < 0.1] = NAN
    correct = (random.random((60, 3)) < 0.6).astype(float)
    columns = calibration_columns(confidence, correct)
    assert calibration_error(columns.mean(0)) == pytest.approx(
        expected_calibration_error(confidence.ravel(), correct.ravel())
    )
    pairs = discrimination_columns(confidence, correct)
    assert discrimination(pairs.mean(0)) == pytest.approx(
        auroc(confidence.ravel(), correct.ravel())
    )
    # A resample is a data set of its own.
    drawn = random.integers(0, 60, 60)
    assert calibration_error(columns[drawn].mean(0)) == pytest.approx(
        expected_calibration_error(confidence[drawn].ravel(), correct[drawn].ravel())
    )
    assert discrimination(pairs[drawn].mean(0)) == pytest.approx(
        auroc(confidence[drawn].ravel(), correct[drawn].ravel())
    )


def test_silence_throughout_is_undefined():
    columns = calibration_columns([[NAN]], [[1.0]])
    assert np.isnan(calibration_error(columns.mean(0)))
    assert np.isnan(discrimination(discrimination_columns([[NAN]], [[1.0]]).mean(0)))


def test_costs_of_stored_responses():
    stored = {
        "correct": [[1.0, None]],
        "confidence": [[0.5, None]],
        "prompt": [[120.0, 120.0]],
        "output": [[600.0, None]],
    }
    got = scored_responses(stored, size_ratio=32 / 7, output_weight=4.0)
    # (120 + 4 * 600) * 32 / 7; a failed response is wrong, silent and free.
    assert got.cost_QS[0].tolist() == pytest.approx([2520 * 32 / 7, 0])
    assert got.correct_QS[0].tolist() == [1, 0]
    assert np.isnan(got.confidence_QS[0, 1])


def stored(confidence, correct):
    count = len(confidence)
    return {
        "correct": [[float(c), float(c)] for c in correct],
        "confidence": [[p, p] for p in confidence],
        "prompt": [[10.0, 10.0]] * count,
        "output": [[5.0, 5.0]] * count,
    }


def test_the_table_of_a_run():
    outcomes = {
        "problems": ["a", "b", "c", "d"],
        "solvable": [True, True, True, False],
        "responses": {
            "small": stored([0.9, 0.9, 0.1, 0.1], [1, 1, 0, 0]),
            "large": stored([1.0] * 4, [1, 1, 1, 0]),
        },
        "size_ratio": 2.0,
        "output_weight": 4.0,
        "threshold": {"source": "fixed", "fixed": 0.5, "accuracy_loss": 0.0, "cost_share": 1.0},
    }
    metrics = EVALUATION.estimate(outcomes, 10, 0)
    assert metrics["pass@1/small"].value == 0.5
    assert metrics["pass@1/large"].value == 0.75
    assert metrics["pass@1/large/solvable"].value == 1
    assert metrics["accuracy"].value == 0.75
    assert metrics["auroc"].value == 1
    # 30 for all, 60 more for two of four, against 60.
    assert metrics["saving"].value == pytest.approx(0)
    # (30 * 3 + 60) / 3 against 60
    assert metrics["saving/solvable"].value == pytest.approx(1 - 50 / 60)
    assert metrics["confidence"].value == pytest.approx(0.5)
    missing = [
        row.metric for row in EVALUATION.rows(("small", "large")) if row.metric not in metrics
    ]
    assert missing == []
