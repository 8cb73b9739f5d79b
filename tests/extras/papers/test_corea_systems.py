"""The systems that COREA compares, from stored responses: numbers by hand."""

import numpy as np
import pytest

from coterie.evaluation.cascade import (
    Cascade,
    Deferral,
    ScoredResponses,
    ThresholdChoice,
    average,
    measure,
)
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.metrics.calibration import calibration_columns, expected_calibration_error
from coterie.evaluation.metrics.discrimination import auroc
from coterie.extras.papers.corea_systems import (
    SYSTEMS,
    Routing,
    at_thresholds,
    curve_content,
    defer_recalibrated,
    recalibrated,
    systems,
    systems_by_set,
    ties_broken,
    with_threshold,
)
from coterie.extras.papers.router import read_probability

NAN = float("nan")


def answered(confidence, correct):
    """Two responses to each question, 10 prompt tokens and 5 more, which never agree."""
    count = len(confidence)
    return Responses(
        np.array([[float(c), float(c)] for c in correct]),
        np.array([[p, p] for p in confidence], dtype=float),
        [["1", "2"]] * count,
        np.ones((count, 2)),
        {"policy": np.tile([10.0, 5.0], (count, 2, 1))},
    )


def test_equal_confidences_go_by_probability_and_others_never():
    stated = np.array([[1.0, 1.0], [0.999, NAN]])
    finer = ties_broken(stated, np.array([[0.2, 1.0], [1.0, 1.0]]))
    # 1 - .0001 * .8; and below them .999, however probable.
    assert finer[0].tolist() == pytest.approx([0.99992, 1.0], abs=1e-12)
    assert finer[1, 0] == pytest.approx(0.9990001, abs=1e-12)
    assert np.isnan(finer[1, 1])


def test_every_system_and_its_controls():
    right = [1, 1, 0, 0, 1, 0]
    small = answered([0.9, 0.9, 0.1, 0.1, 0.9, 0.1], right)
    large = answered([1.0] * 6, [1] * 6)
    probability_QS = np.tile([0.5, 0.6], (6, 1))
    deferrals = dict(
        systems(
            {"base": small, "rlvr": small, "brier": small, "corea": small, "large": large},
            ThresholdChoice("accuracy", accuracy_loss=0.0),
            size_ratio=2.0,
            output_weight=4.0,
            probability_QS={"rlvr": probability_QS, "corea": probability_QS},
            probe_QS=np.full((6, 2), 0.5),
            routing=Routing(np.array([0.9, NAN, 0.1, 0.1, 0.9, 0.1]), np.full(6, 8.0), np.ones(6)),
        )
    )
    assert list(deferrals) == list(SYSTEMS)
    assert deferrals["corea"].deferred_QS[:, 0].tolist() == [False, False, True, True, False, True]
    assert deferrals["oracle"].deferred_QS.tolist() == deferrals["corea"].deferred_QS.tolist()
    assert deferrals["random"].deferred_QS.mean() == 0.5
    assert deferrals["never"].deferred_QS.mean() == 0
    assert deferrals["always"].deferred_QS.mean() == 1
    # Breaking ties does not reorder what was told apart.
    assert deferrals["corea-ties"].deferred_QS.tolist() == deferrals["corea"].deferred_QS.tolist()
    # The router pays 8 + 4 * 1 and then one model; silence goes to the large one.
    router = deferrals["router"]
    assert router.deferred_QS[1].all()
    assert router.cascade.kept_cost_QS[0, 0] == 12 + 30
    assert router.cascade.deferred_cost_QS[0, 0] == 12 + 60
    # Two responses are paid for to ask whether they agree.
    assert deferrals["rlvr-agreement"].cascade.kept_cost_QS[0, 0] == 60
    alone = measure(deferrals["llm"], resamples=2, seed=0)
    assert alone["cost"].value == 60
    assert alone["accuracy"].value == 1
    figures = curve_content(deferrals["corea"])
    assert figures["apgr"] > 0.5
    # From .5 for 30 to 1 for 60: .99, a point below the large model's, for 59.4 of its 60.
    assert figures["saving@1%"] == pytest.approx(0.01)
    assert "slm" not in with_threshold(deferrals)


def test_platt_scaling_by_hand():
    """Two stated values, logits 0 and 1: a line through two points fits their shares exactly."""
    sure = 1 / (1 + np.exp(-1))
    # Each half of the questions has both values four times, right once and three times.
    stated = np.repeat([[0.5, sure]] * 8, 1, axis=0)
    correct = np.repeat([[1, 1], [0, 1], [0, 1], [0, 0]], 2, axis=0).astype(float)
    even = np.arange(8) % 2 == 0
    mapped = recalibrated(stated, correct, "platt", even)
    assert mapped == pytest.approx(np.array([[0.25, 0.75]] * 8), abs=1e-3)
    # Of one kind alone there is no line.
    assert (recalibrated(stated, np.ones((8, 2)), "platt", even) == 1).all()


@pytest.mark.parametrize("method", ["isotonic", "platt", "temperature"])
def test_recalibration_mends_what_is_overconfident(method):
    random = np.random.default_rng(1)
    truth = np.repeat(random.random(400)[:, None], 2, axis=1)
    correct = (random.random((400, 2)) < truth).astype(float)
    # Logits four times too large.
    stated = 1 / (1 + np.exp(-4 * np.log(truth / (1 - truth))))
    stated[0, 0] = NAN
    small = ScoredResponses(correct, stated, np.ones_like(stated))
    mended = defer_recalibrated(small, small, method, ThresholdChoice()).cascade.score_QS
    before = expected_calibration_error(stated.ravel(), correct.ravel())
    assert expected_calibration_error(mended.ravel(), correct.ravel()) < before / 2
    assert np.isnan(mended[0, 0])
    # Either map is rising, so that the order is kept within each half.
    assert auroc(mended[::2].ravel(), correct[::2].ravel()) == pytest.approx(
        auroc(stated[::2].ravel(), correct[::2].ravel()), abs=0.01
    )


@pytest.mark.parametrize("on_test", [False, True])
@pytest.mark.parametrize("source", ["cost", "accuracy"])
@pytest.mark.parametrize("method", ["platt", "temperature"])
def test_a_rising_map_changes_no_decision(method, source, on_test):
    """Where the halves have different maps, each threshold is in the scale of its own."""
    random = np.random.default_rng(3)
    truth = random.random((60, 1))
    correct = (random.random((60, 2)) < truth).astype(float)
    # Every other one of the odd questions is harder than it looks.
    correct[1::4] = 0
    small = ScoredResponses(
        correct, np.round(0.05 + 0.9 * truth, 1) + np.zeros((1, 2)), 85 + correct
    )
    large = ScoredResponses(np.ones((60, 2)), np.ones((60, 2)), np.full((60, 2), 385.0))
    choice = ThresholdChoice(source, accuracy_loss=0.1, on_test=on_test)
    raw = Cascade(small, large, small.confidence_QS)
    decided = raw.defer(raw.thresholds(choice))
    assert 0 < decided.mean() < 1
    mapped = defer_recalibrated(small, large, method, choice)
    assert (mapped.deferred_QS == decided).all()
    assert (mapped.cascade.defer(mapped.threshold_Q) == decided).all()


def test_a_tie_at_zero_stays_a_probability():
    """A confidence of 0 is one; below it nothing could be binned."""
    finer = ties_broken(np.array([[0.0, 0.0]]), np.array([[0.2, 1.0]]))
    assert finer[0].tolist() == pytest.approx([0.00002, 0.0001], abs=1e-12)
    assert calibration_columns(finer, np.zeros((1, 2))).shape == (1, 11)


def test_each_set_has_its_own_threshold():
    """Sure of .7 everywhere; the large model is right half the time on one set, .9 on the other."""
    small = [answered([0.7] * 10, right) for right in ([1] * 5 + [0] * 5, [0] * 5 + [1] * 5)]
    large = [answered([1.0] * 10, right) for right in ([1, 0] * 5, [1] * 9 + [0])]
    choice = ThresholdChoice("large-pass@1", on_test=True)
    costs = {"size_ratio": 2.0, "output_weight": 4.0, "probability_QS": {}}
    by_set = systems_by_set({"corea": small, "large": large}, choice, **costs)
    first, second = (rows["corea"] for rows in by_set)
    assert (first.threshold_Q == 0.5).all()
    assert second.threshold_Q == pytest.approx(0.9)
    assert (first.deferred_QS.mean(), second.deferred_QS.mean()) == (0, 1)
    measured = [measure(own, resamples=4, seed=place) for place, own in enumerate((first, second))]
    together = average(measured)
    # .5 kept and .9 deferred; 30 kept; 30 and 60 deferred; against 60 always.
    assert together["accuracy"].value == pytest.approx(0.7)
    assert together["cost"].value == pytest.approx((30 + 90) / 2)
    assert together["saving"].value == pytest.approx(0)
    assert together["deferred"].value == 0.5
    joined = Deferral.join([first, second])
    assert joined.cascade.kept_cost_QS.shape == (20, 2)
    assert joined.threshold_Q == pytest.approx(np.repeat([0.5, 0.9], 10))


def test_errors_of_two_sets_do_not_cancel():
    """.2 too sure on one, .2 too unsure on the other: .2, where all responses together are right on
    average."""
    sets = [answered([stated] * 10, [1] * 5 + [0] * 5) for stated in (0.7, 0.3)]
    error = [
        measure(
            Deferral(Cascade(own, own, own.confidence_QS), np.zeros((10, 2))), resamples=4, seed=0
        )
        for own in (ScoredResponses(s.correct_QN, s.confidence_QN, np.ones((10, 2))) for s in sets)
    ]
    assert [own["ece"].value for own in error] == pytest.approx([0.2, 0.2])
    assert average(error)["ece"].value == pytest.approx(0.2)


def test_accuracy_and_cost_at_thresholds():
    """Sure of .9 and right, of .2 and wrong; the large model is always right, for twice as much."""
    small, large = answered([0.9, 0.2], [1, 0]), answered([1.0, 1.0], [1, 1])
    costs = {"size_ratio": 2.0, "output_weight": 4.0, "probability_QS": {}}
    rows = dict(systems({"corea": small, "large": large}, ThresholdChoice("fixed"), **costs))
    points = at_thresholds(rows["corea"])
    assert [*points] == ["0", *(f"0.{n}" for n in range(1, 10)), "1", "1.1"]
    assert points["0"] == {"accuracy": 0.5, "cost": 30, "deferred": 0}
    assert points["0.2"] == points["0"]
    assert points["0.3"] == {"accuracy": 1, "cost": 60, "deferred": 0.5}
    assert points["1"] == points["1.1"] == {"accuracy": 1, "cost": 90, "deferred": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # Other numbers than a probability, which only begin like one.
        *[(text, NAN) for text in ("1.5", "10", "0.5.3", "1/2", "80%", ".5-.7", "0.2, 0.7")],
        *[(text, NAN) for text in ("-0.5", "1½", "high", "")],
        *[(" 0.75", 0.75), ("1. So", 1.0), ("0, as", 0.0), (".5 or so", 0.5), (" .25\n", 0.25)],
        ("(0.8", NAN),
        ("0.8)", 0.8),
    ],
)
def test_what_a_router_writes_is_a_probability_or_nothing(text, value):
    assert read_probability(text) == pytest.approx(value, nan_ok=True)
