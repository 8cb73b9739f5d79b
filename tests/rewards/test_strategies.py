"""Strategies side by side, worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.rewards.strategies import (
    count_distinct,
    diversity,
    strategy_exploitation,
    strategy_exploration,
    strategy_format,
    z_score,
)

# Unit vectors in the plane. Cosines: a.b = .6, a.c = 0, b.c = .8.
A, B, C = (1.0, 0.0), (0.6, 0.8), (0.0, 1.0)
HOW = {"correct": 1.0, "rate": 0.1, "cap": 0.5, "same_above": 0.8}


def test_diversity_is_one_less_the_mean_cosine_of_pairs() -> None:
    # (.6 + 0 + .8) / 3 = .46667
    assert diversity([A, B, C]) == pytest.approx(1 - 1.4 / 3)
    assert diversity([A, A]) == 0.0
    assert diversity([A, C]) == 1.0
    # Opposite directions: 1 - (-1) is cut to 1.
    assert diversity([A, (-1.0, 0.0)]) == 1.0
    assert (diversity([A]), diversity(np.zeros((0, 2)))) == (1.0, 0.0)


def test_strategies_are_counted_against_those_that_remain() -> None:
    # .8 is not above .8.
    assert count_distinct([A, B, C], 0.8) == 3
    # At .7: b is no copy of a, c is one of b.
    assert count_distinct([A, B, C], 0.7) == 2
    # At .5: b is a copy of a and goes; c is compared with a alone, and remains.
    assert count_distinct([A, B, C], 0.5) == 2
    assert (count_distinct([A], 0.8), count_distinct(np.zeros((0, 2)), 0.8)) == (1, 0)


def test_exploration_pays_a_right_strategy_or_else_diversity() -> None:
    assert strategy_exploration([False, True, False], [A, B, C], **HOW) == 1.0
    # .1 * 3 * (1 - 1.4 / 3) = .16
    assert strategy_exploration([False] * 3, [A, B, C], **HOW) == pytest.approx(0.16)
    # Eight directions at right angles: .1 * 8 * 1, capped.
    assert strategy_exploration([False] * 8, np.eye(8), **HOW) == 0.5
    # A single wrong strategy: .1 * 1 * 1.
    assert strategy_exploration([False], [A], **HOW) == pytest.approx(0.1)
    assert strategy_exploration([], np.zeros((0, 2)), **HOW) == 0.0


def test_exploitation_is_the_share_that_is_right() -> None:
    assert strategy_exploitation([True, False, False]) == pytest.approx(1 / 3)
    assert strategy_exploitation([]) == 0.0


def test_form_adds_up() -> None:
    form = {"per_strategy": 0.2, "for_answer": 0.3, "for_completeness": 0.1}
    # 3 * .2 + .3 + .1
    assert strategy_format(3, True, True, **form) == pytest.approx(1.0)
    assert strategy_format(2, False, False, **form) == pytest.approx(0.4)
    assert strategy_format(0, True, False, **form) == pytest.approx(0.3)


def test_z_scores_have_the_populations_deviation() -> None:
    # Mean 2, squares 4, 0, 4: deviation sqrt(8 / 3).
    expected = 2 / np.sqrt(8 / 3)
    np.testing.assert_allclose(z_score([0, 2, 4]), [-expected, 0, expected])
    # Equal but for rounding: nothing is blown up.
    assert not z_score([0.1 + 0.2, 0.3, 0.3]).any()
    assert z_score([]).shape == (0,)
    assert not z_score([7.0]).any()


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=8), st.floats(-50, 50), st.floats(1, 9))
def test_z_scores_forget_shift_and_scale(values: list[float], shift: float, scale: float) -> None:
    scores = z_score(values)
    if np.ptp(values) > 1e-3:
        np.testing.assert_allclose(z_score(np.array(values) * scale + shift), scores, atol=1e-6)
        assert scores.std() == pytest.approx(1.0)
