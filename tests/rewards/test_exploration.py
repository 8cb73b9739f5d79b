"""Greedy sets and distance from other traces, and from those of partners."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.datatypes import UserError
from coterie.rewards.exploitation import trace_accuracy
from coterie.rewards.exploration import cross_model, exploration, greedy_set, strategy_ratio

DISTANCE = np.array(
    [
        [0.00, 0.05, 0.40, 0.50, 0.30, 0.20],
        [0.05, 0.00, 0.38, 0.47, 0.28, 0.18],
        [0.40, 0.38, 0.00, 0.10, 0.45, 0.35],
        [0.50, 0.47, 0.10, 0.00, 0.55, 0.42],
        [0.30, 0.28, 0.45, 0.55, 0.00, 0.25],
        [0.20, 0.18, 0.35, 0.42, 0.25, 0.00],
    ]
)
SCORE = np.array([1.3, 1.3, 0.2, 0, 1.3, 0.1])


def pay(**changes):
    return exploration(
        DISTANCE, SCORE, **({"mode": "literal", "margin": 0.15, "cap": 10} | changes)
    )


@pytest.mark.parametrize(
    ("cap", "chosen", "reason", "paid"),
    [
        # 0 first of the best; 3 at .50; 4 at min(.30, .55); 5 at min(.20, .42, .25); then 2 at .10.
        (10, [0, 3, 4, 5], "margin", [0, 0, 0, 0, 0, 0]),
        # 4 is .30 from {0, 3}, 5 is .20, 1 and 2 are within the margin.
        (2, [0, 3], "cap", [0, 0, 0, 0, 0.15, 0.05]),
        (3, [0, 3, 4], "cap", [0, 0, 0, 0, 0, 0.05]),
        # The fourth member is the last beyond the margin: it is not the cap that stops.
        (4, [0, 3, 4, 5], "margin", [0, 0, 0, 0, 0, 0]),
    ],
)
def test_greedy_set_and_literal_reward(cap, chosen, reason, paid):
    assert greedy_set(DISTANCE, SCORE, margin=0.15, cap=cap) == (chosen, reason)
    np.testing.assert_allclose(pay(cap=cap), paid, rtol=0, atol=1e-12)


def test_a_distance_equal_to_the_margin_is_far_enough():
    assert greedy_set(DISTANCE[:2, :2], SCORE[:2], margin=0.05, cap=10) == ([0, 1], "exhausted")


def test_leave_one_out():
    # Nearest others: .05, .05, .10, .10, .25 (of 5), .18 (of 1).
    wanted = [0, 0, 0, 0, 0.10, 0.03]
    np.testing.assert_allclose(pay(mode="leave-one-out"), wanted, rtol=0, atol=1e-12)
    # Who is not eligible is not paid, but is still a neighbour: 5 keeps its .03 next to 1.
    eligible = [0, 0, 0, 0, 0, 1]
    paid = pay(mode="leave-one-out", eligible_B=eligible)
    np.testing.assert_allclose(paid, [0, 0, 0, 0, 0, 0.03], rtol=0, atol=1e-12)


def test_mean_pairwise():
    # Trace 0: (.05 + .40 + .50 + .30 + .20) / 5 = .29; less the margin .14. Trace 4: 1.83 / 5.
    paid = pay(mode="mean-pairwise")
    np.testing.assert_allclose(paid[[0, 4]], [0.14, 0.216], rtol=0, atol=1e-12)


def test_pools_are_paid_apart():
    # In its own pool trace 3 is alone; {0, 4}: .30 apart; {1, 2, 5}: nearest .18, .35, .18.
    paid = pay(mode="leave-one-out", pool_B=["x", "y", "y", "z", "x", "y"])
    np.testing.assert_allclose(paid, [0.15, 0.03, 0.20, 0, 0.15, 0.03], rtol=0, atol=1e-12)


def test_the_best_of_a_partner_qualifies_and_its_nearest_trace_counts():
    # Role 0 wrote the first two traces and earned nothing; role 1 earned 1 and 0 in the same round
    # and 1 in the next. The first is .3, .5 and .2 away from these: .3 less the margin .1. The
    # second is nearer than the margin.
    distance = np.zeros((5, 5))
    distance[:2, 2:] = [[0.3, 0.5, 0.2], [0.05, 0.3, 0.4]]
    distance += distance.T
    paid = cross_model(
        distance, [0, 0, 1, 0, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 1], threshold=0.8, margin=0.1
    )
    np.testing.assert_allclose(paid, [0.2, 0, 0, 0, 0], rtol=0, atol=1e-12)


def test_strategy_ratio():
    # From strategy 0: 2 at .40 enters, 1 at .05 does not.
    assert strategy_ratio(DISTANCE[:3, :3], margin=0.15, cap=10) == pytest.approx(2 / 3, abs=1e-15)
    assert strategy_ratio(DISTANCE[:3, :3], margin=0.15, cap=1) == pytest.approx(1 / 3, abs=1e-15)
    assert strategy_ratio(DISTANCE[:1, :1], margin=0.15, cap=10) == 0.0


def test_mistakes_are_refused():
    with pytest.raises(UserError, match="leave-one-out"):
        pay(mode="loo")
    with pytest.raises(UserError, match="at least 1"):
        greedy_set(DISTANCE, SCORE, margin=0.15, cap=0)


def test_no_traces():
    assert greedy_set(np.zeros((0, 0)), [], margin=0.15, cap=3) == ([], "exhausted")
    assert exploration(np.zeros((0, 0)), [], mode="literal", margin=0.1, cap=3).shape == (0,)


@st.composite
def questions(draw):
    """Distances of up to eight traces, all different, and different scores: no ties."""
    size = draw(st.integers(1, 8))
    pairs = size * (size - 1) // 2
    ranks = draw(st.permutations(range(1, pairs + 1)))
    distance = np.zeros((size, size))
    distance[np.triu_indices(size, 1)] = np.array(ranks) / 20
    score = np.array(draw(st.permutations(range(size))), dtype=float)
    return distance + distance.T, score, np.array(draw(st.permutations(range(size))))


@settings(max_examples=150, deadline=None)
@given(questions(), st.floats(0, 1.5), st.integers(1, 8))
def test_members_are_apart_and_order_does_not_matter(question, margin, cap):
    distance, score, order = question
    chosen, reason = greedy_set(distance, score, margin=margin, cap=cap)
    assert chosen[0] == np.argmax(score)
    assert len(set(chosen)) == len(chosen) <= cap
    among = distance[np.ix_(chosen, chosen)] + np.diag([np.inf] * len(chosen))
    assert (among >= margin).all()
    outside = np.delete(distance[:, chosen].min(axis=1), chosen)
    if reason == "margin":
        assert outside.size
        assert (outside < margin).all()
    elif reason == "cap":
        assert outside.max() >= margin
    else:
        assert not outside.size
    for mode in ("literal", "leave-one-out", "mean-pairwise"):
        paid = exploration(distance, score, mode=mode, margin=margin, cap=cap)
        assert (paid >= 0).all()
        permuted = exploration(
            distance[np.ix_(order, order)], score[order], mode=mode, margin=margin, cap=cap
        )
        np.testing.assert_allclose(permuted, paid[order], rtol=0, atol=1e-12)
        if mode == "literal":
            assert (paid > 0).any() <= (reason == "cap")


def test_three_roles_take_the_mean_over_partners():
    # One trace each, d(a,b) .5, d(a,c) .3, d(b,c) .2, margin .1; c failed and has no quality.
    distance = np.array([[0, 0.5, 0.3], [0.5, 0, 0.2], [0.3, 0.2, 0]])
    paid = cross_model(
        distance, [1.3, 1.3, 0], ["a", "b", "c"], [0, 0, 0], threshold=1.0, margin=0.1
    )
    # a: (.4 from b + 0 from c) / 2; b: (.4 + 0) / 2; c: (.2 from a + .1 from b) / 2.
    np.testing.assert_allclose(paid, [0.2, 0.2, 0.15], rtol=0, atol=1e-12)


def test_an_absent_partner_does_not_dilute():
    # c has no trace in round 0 (it failed to answer): a has the partner b alone there.
    distance = np.array([[0, 0.5, 0.9], [0.5, 0, 0.9], [0.9, 0.9, 0]])
    paid = cross_model(
        distance, [1.3, 1.3, 1.3], ["a", "b", "c"], [0, 0, 1], threshold=1.0, margin=0.1
    )
    np.testing.assert_allclose(paid, [0.4, 0.4, 0], rtol=0, atol=1e-12)


def test_quality_at_the_threshold_counts():
    distance = [[0, 0.5], [0.5, 0]]
    paid = cross_model(distance, [0.1, 0.0], ["a", "b"], [0, 0], threshold=0.1, margin=0.1)
    np.testing.assert_allclose(paid, [0, 0.4], rtol=0, atol=1e-12)


def test_unknown_mode_of_trace_accuracy():
    with pytest.raises(UserError, match="v1 or v2"):
        trace_accuracy([1], [0], "v3")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 10))
def test_order_does_not_matter(seed, size):
    random = np.random.default_rng(seed)
    distance = random.random((size, size))
    distance = distance + distance.T
    exploit, role, round_ = (random.integers(0, n, size) for n in (2, 3, 2))
    order = random.permutation(size)
    paid = cross_model(distance, exploit, role, round_, threshold=0.5, margin=0.2)
    permuted = cross_model(
        distance[np.ix_(order, order)],
        exploit[order],
        role[order],
        round_[order],
        threshold=0.5,
        margin=0.2,
    )
    np.testing.assert_allclose(permuted, paid[order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        trace_accuracy(exploit[order], round_[order], "v2"),
        trace_accuracy(exploit, round_, "v2")[order],
        rtol=0,
        atol=1e-12,
    )
    # The two versions share out the correctness between them.
    both = trace_accuracy(exploit, round_, "v1") + trace_accuracy(exploit, round_, "v2")
    np.testing.assert_allclose(both, exploit, rtol=0, atol=1e-12)
