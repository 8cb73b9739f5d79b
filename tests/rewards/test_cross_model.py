import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.cross_model import cross_model
from rewards.trace_accuracy import trace_accuracy
from vocabulary import UserError


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
