"""Distances by meaning and by operations, and which operations a text speaks of."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.rewards.exploration import OPERATIONS, hybrid_distance, signatures

NONE = np.zeros((4, 3), dtype=bool)


def test_parts_by_hand():
    embeddings = [[1, 0], [0, 1], [-1, 0], [0.6, 0.8]]
    # Cosines with row 0: 0, -1, .6. No operations: the structural part is 0.
    semantic = hybrid_distance(embeddings, NONE)
    np.testing.assert_allclose(semantic[0], [0, 0.6, 1.2, 0.24], rtol=0, atol=1e-9)
    # {a b} against {b c}: 1 of 3 shared; against {}: 1; against itself: 0; {} against {}: 0.
    operations = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)
    structural = hybrid_distance(np.zeros((4, 2)), operations)
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


NAMES = list(OPERATIONS)
EXAMPLES = {
    "addition": ["3 + 4", "the SUM of both", "adding these", "in total"],
    "subtraction": ["7 - 3", "x−1", "x^2 - 3x", "7 minus 3", "the difference"],
    "multiplication": ["3 × 4", "3*4", r"3 \cdot x", r"a \times b", "6 times", "the product"],
    "division": ["8 ÷ 2", "8 / 2", "(a)/(b)", "divide by two", "12 miles per hour"],
    "equation": ["y = 1", "this equals four", "an equation"],
    "comparison": ["3 < 4", r"x \leq 2", "x ≥ 2", "greater than", "at least one", "inequality"],
    "percentage": ["15%", "fifteen percent", "as a percentage"],
    "fraction": [r"\frac{1}{2}", r"\dfrac12", "1/2", "half of them", "the denominator"],
    "square": ["x^2", "x^{2}", "x²", "squared", "n**2"],
    "root": ["√2", r"\sqrt{2}", "square root", "the roots"],
    "substitution": ["substitute it", "plugging in", "replace y"],
    "simplification": ["simplify", "reduces to", "the x cancel"],
    "factoring": ["factor it", "factorise", "factored"],
    "expansion": ["expand the", "by distributing", "an expansion"],
    "isolation": ["isolate x", "solve for x", "rearranging"],
    "verification": ["verify", "let us check", "confirmed"],
    "case_analysis": ["in this case", "if it is", "scenario"],
    "induction": ["a pattern", "the sequence", "by induction"],
}


def strategies_in(text: str) -> set[str]:
    return {name for name, present in zip(NAMES, signatures([text])[0], strict=True) if present}


def test_the_table_holds_the_eighteen_classes():
    assert list(EXAMPLES) == NAMES
    assert len(NAMES) == 18


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in EXAMPLES.items() for text in texts]
)
def test_triggers(name, text):
    assert name in strategies_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Janet eats eggs and bakes muffins.",
        "a step-by-step address, summer, x-ray, caseload, iffy, timeshare, x^21 eggs",
        "- a bullet\n* another\n**bold** words",
        '<strategy id="1"><if a="+">plain</if></strategy>',
    ],
)
def test_lookalikes_trigger_nothing(text):
    assert strategies_in(text) == set()


def test_one_text_exactly():
    text = "<approach>Add</approach> 3 + 4 = 7, then check that 7 < 8 and 9 > 8."
    assert strategies_in(text) == {"addition", "equation", "verification", "comparison"}


def test_rows_stand_for_texts():
    rows = signatures(["3 + 4", "", "x = 1"])
    assert rows.shape == (3, 18)
    assert rows.sum(axis=1).tolist() == [1, 0, 1]
    assert signatures([]).shape == (0, 18)


@pytest.mark.parametrize(
    "piece",
    ["\\", "<", "<a ", "<a.b", "9^{", "1", "1 ", " ", "x -", "\\frac{", "take ", "solve ", "é"],
)
def test_a_megabyte_of_garbage_takes_linear_time(piece):
    def seconds(characters: int) -> float:
        text = piece * (characters // len(piece))
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            signatures([text])
            best = min(best, time.process_time() - start)
        return best

    # Eight times the text: eight times as long if linear, sixty-four times if quadratic. The bound
    # lies between, far enough from both for a machine that is busy with other things.
    assert seconds(100_000) < 24 * seconds(12_500) + 0.05
