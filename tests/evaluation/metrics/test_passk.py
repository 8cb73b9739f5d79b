from itertools import combinations

import numpy as np
import pytest

from coterie.evaluation.metrics.passk import (
    Vote,
    majority_vote,
    pass_at_k,
    team_pass_at_k,
    unbiased,
    union,
)

NAN = np.nan


@pytest.mark.parametrize(
    ("samples", "right", "k", "value"),
    # 1 - C(3,2)/C(4,2) = 1 - 3/6; 1 - C(6,4)/C(8,4) = 1 - 15/70; fewer than k wrong ones.
    [(4, 1, 2, 0.5), (8, 2, 4, 55 / 70), (2, 1, 2, 1.0), (5, 0, 3, 0.0), (3, 3, 1, 1.0)],
)
def test_by_hand(samples, right, k, value):
    assert unbiased(samples, right, k) == pytest.approx(value, abs=1e-15)


def test_against_all_draws():
    for samples in range(1, 7):
        for right in range(samples + 1):
            outcomes = [1] * right + [0] * (samples - right)
            for k in range(1, samples + 1):
                draws = list(combinations(outcomes, k))
                wanted = sum(any(draw) for draw in draws) / len(draws)
                assert unbiased(samples, right, k) == pytest.approx(wanted, abs=1e-12)


def test_large_counts_are_exact():
    # 1 - 9999/10000; 1 - C(5000, 2)/C(10000, 2) = 1 - 5000 4999 / (10000 9999)
    assert unbiased(10_000, 1, 1) == pytest.approx(1e-4, abs=1e-15)
    assert unbiased(10_000, 5000, 2) == pytest.approx(1 - 0.5 * 4999 / 9999, abs=1e-12)


def test_missing_samples_were_never_asked_for():
    correct = [[1, 0, 0, 0], [NAN, 1, NAN, 0], [NAN, NAN, NAN, 1], [NAN] * 4]
    np.testing.assert_allclose(pass_at_k(correct, 1), [0.25, 0.5, 1, NAN])
    np.testing.assert_allclose(pass_at_k(correct, 2), [0.5, 1, NAN, NAN])


def test_k_is_positive():
    with pytest.raises(ValueError, match="at least 1"):
        pass_at_k([[1]], 0)


def test_of_scores_it_is_the_best_that_is_expected():
    # Of (1, .5, 0) two are drawn: the best is 1 twice in three, .5 once.
    assert pass_at_k([[1.0, 0.5, 0.0]], 2) == pytest.approx(2.5 / 3)
    scores = np.random.default_rng(0).normal(size=7)
    for k in (1, 3, 7):
        every = [max(drawn) for drawn in combinations(scores, k)]
        assert pass_at_k([[*scores, np.nan]], k) == pytest.approx(np.mean(every))
    assert np.isnan(pass_at_k([[0.5, np.nan]], 2)).all()


@pytest.mark.parametrize(
    ("answers", "correct", "vote"),
    [
        (
            {"alice": ["7", "8"], "bob": ["8", None]},
            {"alice": [False, True], "bob": [True, False]},
            Vote(winner="8", correct=1.0, expected=1.0),
        ),
        # alice votes before bob however the mapping is ordered; three answers tie, one is right.
        (
            {"bob": ["9"], "alice": ["7", "8"]},
            {"bob": [False], "alice": [False, True]},
            Vote(winner="7", correct=0.0, expected=1 / 3),
        ),
        # Two of two tied; an answer is as right as its first vote.
        ({"a": ["1", "2", "1", "2", "3"]}, {"a": [1, 0, 1, 0, 0]}, Vote("1", 1.0, 0.5)),
        ({"a": ["1", "1"]}, {"a": [True, False]}, Vote("1", 1.0, 1.0)),
        # Silence is no vote.
        ({"a": [None, None, "5"]}, {"a": [0, 0, 1]}, Vote("5", 1.0, 1.0)),
        ({"a": [None]}, {"a": [False]}, Vote(None, 0.0, 0.0)),
    ],
)
def test_a_majority_votes(answers, correct, vote):
    assert majority_vote(answers, correct) == vote


CORRECT = {
    "alice": [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]],
    "bob": [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]],
}


def test_team_without_bias():
    # k = 1: 1 - (3/4)(1), 1 - (1)(3/4), 1 - (1/2)(1/4), 1 - (3/4)(1).
    wanted = [0.25, 0.25, 0.875, 0.25]
    np.testing.assert_allclose(team_pass_at_k(CORRECT, 1), wanted, rtol=0, atol=1e-12)
    # k = 2: alice 1/2, 0, 5/6, 1/2; bob 0, 1/2, 1, 0.
    wanted = [0.5, 0.5, 1, 0.5]
    np.testing.assert_allclose(team_pass_at_k(CORRECT, 2), wanted, rtol=0, atol=1e-12)


def test_a_question_that_one_role_lacks_is_left_out():
    assert np.isnan(union({"a": [1.0], "b": [NAN]})).all()
