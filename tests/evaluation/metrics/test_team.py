import numpy as np
import pytest

from coterie.datatypes import UserError
from coterie.evaluation.metrics.team import (
    best_role,
    equal_candidates,
    gain_over_best,
    shapley_shares,
    subset_unions,
    team_any_of_first,
    team_pass_at_k,
    union,
)

NAN = np.nan
CORRECT = {
    "alice": [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]],
    "bob": [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]],
}


def test_team_of_first_samples():
    assert team_any_of_first(CORRECT, 1).tolist() == [1, 0, 0, 0]
    assert team_any_of_first(CORRECT, 2).tolist() == [1, 1, 1, 0]


def test_team_without_bias():
    # k = 1: 1 - (3/4)(1), 1 - (1)(3/4), 1 - (1/2)(1/4), 1 - (3/4)(1).
    wanted = [0.25, 0.25, 0.875, 0.25]
    np.testing.assert_allclose(team_pass_at_k(CORRECT, 1), wanted, rtol=0, atol=1e-12)
    # k = 2: alice 1/2, 0, 5/6, 1/2; bob 0, 1/2, 1, 0.
    wanted = [0.5, 0.5, 1, 0.5]
    np.testing.assert_allclose(team_pass_at_k(CORRECT, 2), wanted, rtol=0, atol=1e-12)


def test_a_role_alone_with_the_candidates_of_the_team():
    # Two roles at k = 2 look at four candidates: all samples of each.
    alone = equal_candidates(CORRECT, 2)
    assert alone["alice"].tolist() == [1, 0, 1, 1]
    assert alone["bob"].tolist() == [0, 1, 1, 0]
    assert best_role(alone) == "alice"
    with pytest.raises(UserError, match=r"needs 6 samples of alice, not 4"):
        equal_candidates(CORRECT, 3)


def test_gain_over_the_best_role():
    solved = {"a": [1, 1, 0, 0], "b": [1, 0, 1, 0], "c": [1, 0, 0, 0]}
    gain = gain_over_best(solved)
    assert (gain.value, gain.count) == (0.25, 4)
    # The gain is the lesser count of a's own and of b's own question among four drawn, over 4:
    # 0 with probability 2 (3/4)^4 - (1/2)^4 = .57, and 2 in 6 cases of 256, 2.3 %.
    assert gain.low == 0.0
    assert 0.25 <= gain.high <= 0.5
    # Without b's first answer three questions are shared: union 2/3, a and b 1/3 each.
    solved["b"] = [NAN, 0, 1, 0]
    gain = gain_over_best(solved)
    assert gain.value == pytest.approx(1 / 3, abs=1e-12)
    assert gain.count == 3


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
    assert best_role({"a": [NAN], "b": [0.0]}) == "b"
