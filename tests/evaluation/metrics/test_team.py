import numpy as np
import pytest

from coterie.evaluation.metrics.passk import (
    shapley_shares,
    subset_unions,
    team_pass_at_k,
    union,
)

NAN = np.nan
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


def test_unions_of_subsets_and_shares():
    solved = {"a": [1, 1, 0, 0], "b": [1, 0, 1, 0], "c": [1, 0, 0, 0]}
    unions = subset_unions(solved)
    assert list(unions)[:3] == [("a",), ("b",), ("c",)]
    assert unions["a", "b"] == 0.75
    assert unions["a", "c"] == 0.5
    assert unions["a", "b", "c"] == 0.75
    # First question shared by three; the next two each have one owner: (1/3 + 1)/4, (1/3)/4.
    shares = shapley_shares(solved)
    assert shares == pytest.approx({"a": 1 / 3, "b": 1 / 3, "c": 1 / 12}, abs=1e-12)
    with pytest.raises(ValueError, match="not of rates"):
        shapley_shares({"a": [0.5]})


def test_shares_are_shapley_values():
    """Against the definition: the mean marginal contribution over all orders of three roles."""
    from itertools import permutations

    random = np.random.default_rng(3)
    solved = {role: (random.random(40) < 0.4).astype(float) for role in "abc"}
    wanted = dict.fromkeys("abc", 0.0)
    for order in permutations("abc"):
        for place, role in enumerate(order):
            before = order[:place]
            without = union({r: solved[r] for r in before}).mean() if before else 0.0
            with_role = union({r: solved[r] for r in (*before, role)}).mean()
            wanted[role] += (with_role - without) / 6
    assert shapley_shares(solved) == pytest.approx(wanted, abs=1e-12)


def test_a_question_that_one_role_lacks_is_left_out():
    assert np.isnan(union({"a": [1.0], "b": [NAN]})).all()
    shares = shapley_shares({"a": [1, 1], "b": [NAN, 1]})
    assert shares == {"a": 0.5, "b": 0.5}
