import numpy as np
import pytest
from scipy import stats

from coterie.evaluation.metrics.intervals import (
    bootstrap,
    interval,
    mean_intervals,
    resampled_means,
    t_interval,
)
from coterie.evaluation.metrics.means import ratio

NAN = np.nan


def test_two_questions_by_hand():
    # (0, 1) drawn twice with replacement: mean 0 with 1/4, .5 with 1/2, 1 with 1/4.
    means = resampled_means([[0.0], [1.0]], resamples=40_000, seed=1)
    values, counts = np.unique(means, return_counts=True)
    assert values.tolist() == [0.0, 0.5, 1.0]
    # Four standard deviations of a share of .25 over 40,000 draws are .0087.
    np.testing.assert_allclose(counts / 40_000, [0.25, 0.5, 0.25], rtol=0, atol=0.0087)


def test_agrees_with_scipy():
    values = np.random.default_rng(0).random(80)
    ours = mean_intervals(values[:, None], resamples=20_000, seed=3)[0]
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(4)
    ).confidence_interval
    # The standard error of the mean is about .032; the ends carry some 2 % of it as noise.
    assert ours.value == pytest.approx(values.mean(), abs=1e-15)
    assert ours.low == pytest.approx(theirs.low, abs=2e-3)
    assert ours.high == pytest.approx(theirs.high, abs=2e-3)
    assert ours.count == 80


def test_the_seed_names_the_resamples():
    values = np.random.default_rng(0).random((30, 2))
    assert np.array_equal(resampled_means(values, seed=5), resampled_means(values, seed=5))
    assert not np.array_equal(resampled_means(values, seed=5), resampled_means(values, seed=6))


def test_chunks_draw_what_one_piece_draws(monkeypatch):
    values = np.random.default_rng(0).random((30, 2))
    whole = resampled_means(values, resamples=100)
    monkeypatch.setattr("coterie.evaluation.metrics.intervals._CHUNK", 70)
    pieces = resampled_means(values, resamples=100)
    np.testing.assert_allclose(pieces, whole, rtol=0, atol=1e-12)


def test_rows_stay_together():
    column = np.random.default_rng(0).random(25)
    means = resampled_means(np.stack([column, 1 - column], axis=1), resamples=500)
    np.testing.assert_allclose(means.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_missing_values_leave_numerator_and_denominator():
    complete, missing = mean_intervals([[1, 1], [1, NAN], [1, 1], [0, NAN]], resamples=2000)
    assert complete.value == 0.75
    assert (missing.value, missing.low, missing.high, missing.count) == (1.0, 1.0, 1.0, 2)
    # A resample may miss every value: it has no mean, and the interval does without it.
    assert np.isnan(resampled_means([[NAN], [1.0]], resamples=50)).any()


def test_nothing_measured():
    (estimate,) = mean_intervals([[NAN], [NAN]])
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
    assert estimate.count == 0
    assert np.isnan(mean_intervals(np.zeros((0, 1)))[0].value)
    assert np.isnan(interval([NAN])).all()


def test_a_single_question_has_no_interval():
    (estimate,) = mean_intervals([[1.0]])
    assert estimate.value == 1.0
    assert np.isnan([estimate.low, estimate.high]).all()


@pytest.mark.parametrize(("questions", "marked"), [(8, 0), (16, 30)])
def test_few_questions_exclude_nothing(questions, marked):
    """By chance one difference in twenty may be marked; of eight questions one in eight is."""
    random = np.random.default_rng(1)
    twice = (random.random((300, 2, questions, 2)) < 0.5).mean(axis=-1)
    drawn = [
        mean_intervals((own - other)[:, None], resamples=400, seed=trial)[0]
        for trial, (own, other) in enumerate(twice)
    ]
    assert sum(estimate.excludes_zero for estimate in drawn) <= marked


def test_a_function_of_means():
    # 3 rescued of 4 eligible over five questions.
    table = np.array([[1, 1], [1, 1], [0, 1], [1, 1], [0, 0]], dtype=float)
    estimate = bootstrap(table, lambda mean: ratio(mean[..., 0], mean[..., 1]))
    assert estimate.value == pytest.approx(0.75, abs=1e-12)
    assert estimate.count == 5
    # Of four 0/1 trials with rate 3/4, P(none right) = .4 % < 2.5 % < P(at most 1 of 4) = 5 %.
    assert 0.2 <= estimate.low <= 1 / 3
    assert estimate.high == 1.0


def test_a_question_with_any_value_counts():
    table = [[1.0, NAN], [1.0, 1.0], [NAN, NAN]]
    assert bootstrap(table, lambda mean: mean[..., 0], resamples=2).count == 2


def test_five_seeds():
    # s = sqrt(2.5), t_4 = 2.7764: 2.7764 * 1.5811 / sqrt(5) = 1.9633
    estimate = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (estimate.value, estimate.count) == (3.0, 5)
    assert estimate.low == pytest.approx(3 - 1.9633, abs=1e-4)
    assert estimate.high == pytest.approx(3 + 1.9633, abs=1e-4)


def test_seeds_without_a_value_are_left_out():
    assert t_interval([1.0, NAN, 3.0]) == t_interval([1.0, 3.0])
    single = t_interval([0.5])
    assert single.value == 0.5
    assert np.isnan(single.low)
    assert np.isnan(t_interval([]).value)
