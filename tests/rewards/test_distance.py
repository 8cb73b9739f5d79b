import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.distance import hybrid_distance
from vocabulary import UserError

NONE = np.zeros((4, 3), dtype=bool)


def test_parts_by_hand():
    embeddings = [[1, 0], [0, 1], [-1, 0], [0.6, 0.8]]
    # Cosines with row 0: 0, -1, .6. No operations: the structural part is 0.
    semantic = hybrid_distance(embeddings, NONE)
    np.testing.assert_allclose(semantic[0], [0, 0.6, 1.2, 0.24], rtol=0, atol=1e-9)
    # {a b} against {b c}: 1 of 3 shared; against {}: 1; against itself: 0; {} against {}: 0.
    operations = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)
    structural = hybrid_distance(None, operations, semantic=0, structural=0.4)
    np.testing.assert_allclose(structural[0], [0, 0.8 / 3, 0.4, 0.4], rtol=0, atol=1e-9)
    assert structural[2, 3] == 0.0
    both = hybrid_distance(embeddings, operations)
    np.testing.assert_allclose(both, semantic + structural, rtol=0, atol=2e-9)


def test_opposite_texts_without_common_operations_are_farthest():
    operations = np.array([[1, 0], [0, 1]], dtype=bool)
    assert hybrid_distance([[1, 0], [-1, 0]], operations)[0, 1] == 1.6


def test_rows_of_zeros_equal_each_other_only():
    distance = hybrid_distance([[0, 0], [0, 0], [1, 0]], NONE[:3])
    assert distance.tolist() == [[0, 0, 0.6], [0, 0, 0.6], [0.6, 0.6, 0]]


def test_missing_embeddings_are_refused_where_they_count():
    with pytest.raises(UserError, match="choose an encoder"):
        hybrid_distance(None, NONE)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_invariants(seed, size):
    random = np.random.default_rng(seed)
    embeddings = random.standard_normal((size, 5)).astype(np.float32)
    embeddings[-1] = embeddings[0]
    operations = random.random((size, 18)) < 0.3
    operations[-1] = operations[0]
    distance = hybrid_distance(embeddings, operations)
    assert np.array_equal(distance, distance.T)
    assert not np.diag(distance).any()
    assert (distance >= 0).all()
    assert (distance <= 1.6).all()
    # Equal texts are at distance 0 and tie exactly against every other text.
    assert np.array_equal(distance[0], distance[-1])
    order = random.permutation(size)
    permuted = hybrid_distance(embeddings[order], operations[order])
    np.testing.assert_allclose(permuted, distance[np.ix_(order, order)], rtol=0, atol=2e-9)
