import numpy as np
import pytest

from coterie.evaluation.metrics.deferral import (
    DeferralCurve,
    ThresholdChoice,
    area_over_random,
    average_gap_recovered,
    call_performance_threshold,
    choose_threshold,
    cost_at_accuracy,
    deferral_curve,
    performance_gap_recovered,
    random_deferral,
    response_cost,
)

NAN = np.nan
CONFIDENCE = np.array([0.9, 0.8, 0.3, NAN])
SMALL = np.array([1, 0, 0, 0])
LARGE = np.array([1, 1, 1, 0])
CURVE = deferral_curve(CONFIDENCE, SMALL, LARGE, [10.0] * 4, [100.0, 200, 300, 400])


def at(threshold: float) -> tuple[float, float, float]:
    place = np.flatnonzero(threshold == CURVE.threshold_D)[0]
    return CURVE.accuracy_D[place], CURVE.cost_D[place], CURVE.deferred_D[place]


def test_cost_by_hand():
    """120 prompt tokens, 600 and 550 output tokens, sizes 7 and 32."""
    small = float(response_cost(120, 600))
    large = float(response_cost(120, 550, size_ratio=32 / 7))
    assert small == 2520
    assert large == pytest.approx(10605.714, abs=5e-4)
    curve = deferral_curve([0.5], [1], [1], [small], [large])
    assert curve.cost_D[0] == 2520
    assert curve.cost_D[-1] == pytest.approx(13125.714, abs=5e-4)


def test_random_deferral_by_hand():
    assert random_deferral(56.6, 69.0, 0.599) == pytest.approx(64.03, abs=5e-3)
    assert 67.5 - random_deferral(56.6, 69.0, 0.599) == pytest.approx(3.47, abs=5e-3)


def test_curve_by_hand():
    # At 0 only silence is deferred (the large model fails there too).
    assert at(0.0) == (0.25, 10 + 100, 0.25)
    # A confidence that equals the threshold is kept, just above it is deferred.
    assert at(0.3) == (0.25, 110, 0.25)
    assert at(0.35) == (0.5, 10 + 175, 0.5)
    assert at(0.8) == (0.5, 185, 0.5)
    assert at(0.85) == (0.75, 10 + 225, 0.75)
    assert at(1.1) == (0.75, 10 + 250, 1.0)
    assert at(0.0)[0] == CURVE.accuracy_small == 0.25
    assert CURVE.accuracy_large == 0.75


def test_areas_by_hand():
    # Points (0, .25) (.25, .25) (.5, .5) (.75, .75) (1, .75): area .0625 + .09375 + .15625 + .1875
    # = .5; the chord from .25 to .75 has the same .5.
    assert area_over_random(CURVE) == pytest.approx(0, abs=1e-12)
    assert average_gap_recovered(CURVE) == pytest.approx(0.5, abs=1e-12)
    better = deferral_curve([0.9, 0.8, 0.3, 0.7], SMALL, LARGE, [0] * 4, [0] * 4)
    # Now the first deferred is the third question: (0, .25) (.25, .5) (.5, .5) (.75, .75) (1, .75):
    # .09375 + .125 + .15625 + .1875 = .5625.
    assert area_over_random(better) == pytest.approx(0.0625, abs=1e-12)
    assert average_gap_recovered(better) == pytest.approx((0.5625 - 0.25) / 0.5, abs=1e-12)


def test_cost_at_equal_accuracy():
    # .25 costs 110, .5 costs 185 and .75 costs 235; half-way between the first two 147.5.
    assert [cost_at_accuracy(CURVE, x) for x in (0.2, 0.375, 0.5, 0.75)] == [110, 147.5, 185, 235]
    assert np.isnan(cost_at_accuracy(CURVE, 0.8))
    # A score that says nothing is random deferral: from 1 at .5 to 5 at 1.
    flat = deferral_curve([0.5] * 2, [1, 0], [1, 1], [1.0] * 2, [4.0] * 2)
    assert cost_at_accuracy(flat, 0.75) == 3


def test_gap_recovered():
    assert performance_gap_recovered(0.5, 0.25, 0.75) == 0.5
    assert np.isnan(performance_gap_recovered(0.5, 0.5, 0.5))
    # Recovered 0 until .25, then linear to 1 at .75.
    assert call_performance_threshold(CURVE, 0.5) == pytest.approx(0.5, abs=1e-12)
    assert call_performance_threshold(CURVE, 0.2) == pytest.approx(0.35, abs=1e-12)
    assert call_performance_threshold(CURVE, 0.0) == 0.0
    assert np.isnan(call_performance_threshold(CURVE, 1.2))


def test_curve_against_a_loop():
    random = np.random.default_rng(1)
    confidence = np.where(random.random(50) < 0.1, NAN, random.integers(0, 11, 50) / 10)
    small, large = random.random(50) < 0.4, random.random(50) < 0.8
    curve = deferral_curve(confidence, small, large, np.ones(50), np.full(50, 5.0))
    for threshold, accuracy, cost, deferred in zip(
        curve.threshold_D, curve.accuracy_D, curve.cost_D, curve.deferred_D, strict=True
    ):
        kept = confidence >= threshold
        assert accuracy == pytest.approx(np.where(kept, small, large).mean(), abs=1e-12)
        assert cost == pytest.approx(np.where(kept, 1, 6).mean(), abs=1e-12)
        assert deferred == pytest.approx((~kept).mean(), abs=1e-12)


def test_a_threshold_at_its_bound_is_chosen():
    # By default .01 may be lost, .8 of the large model's cost may be spent, and .5 is fixed.
    curve = DeferralCurve(
        threshold_D=np.array([0.2, 0.4, 0.6]),
        accuracy_D=np.array([0.985, 0.99, 1.0]),
        cost_D=np.array([1.0, 2.0, 2.2]),
        deferred_D=np.array([0.0, 0.5, 1.0]),
        accuracy_small=0.985,
        accuracy_large=1.0,
    )
    assert choose_threshold(curve, ThresholdChoice("accuracy"), 2.5) == 0.4
    assert choose_threshold(curve, ThresholdChoice("cost"), 2.5) == 0.4
    assert choose_threshold(curve, ThresholdChoice("fixed"), 2.5) == 0.5


def test_no_questions():
    with pytest.raises(ValueError, match="at least one question"):
        deferral_curve([], [], [], [], [])
