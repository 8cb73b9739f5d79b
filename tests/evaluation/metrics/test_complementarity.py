import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import matthews_corrcoef

from coterie.evaluation.metrics.complementarity import compare, complementarity
from coterie.evaluation.metrics.means import as_floats


def test_independent_errors():
    """Two models at 92.95 and 93.33 % with unrelated errors reach 99.53 % together."""
    table = complementarity(0.9295, 0.9333, 0.9295 * 0.9333)
    assert float(table.union) == pytest.approx(0.99530, abs=5e-6)
    assert float(table.phi) == pytest.approx(0, abs=1e-12)
    assert table.independent_union == pytest.approx(float(table.union), abs=1e-12)
    assert table.gain == pytest.approx(0.0620, abs=5e-5)


def test_a_table_by_hand():
    # Both right 3, first only 2, second only 1, neither 4, of ten.
    first = [1] * 5 + [0] * 5
    second = [1] * 3 + [0] * 2 + [1] + [0] * 4
    table = compare(first, second)
    values = {name: float(value) for name, value in vars(table).items()}
    assert values == pytest.approx(
        {
            "union": 0.6,
            "gain": 0.1,  # the weaker (.4) right where the stronger (.5) is wrong
            "gain_bound": 0.4,
            "both_wrong": 0.4,
            "independent_union": 0.7,
            "phi": 0.1 / np.sqrt(0.06),  # (.3 - .2) / sqrt(.25 * .24)
        },
        abs=1e-12,
    )


def test_undefined_where_a_role_never_fails():
    table = compare([1, 1, 1], [1, 0, 1])
    assert np.isnan(table.phi)


def test_the_gain_is_at_most_what_the_stronger_gets_wrong():
    # .7 right, but only 1 - .8 = .2 wrong by the stronger.
    assert complementarity(0.8, 0.7, 0.6).gain_bound == pytest.approx(0.2, abs=1e-12)


def test_a_mean_may_exceed_one_by_rounding():
    table = complementarity(np.nextafter(1.0, 2.0), 0.5, 0.5)
    assert np.isnan(table.phi)


def test_only_shared_questions_count():
    table = compare([1, 0, 1, np.nan], [1, 1, np.nan, 0])
    assert table.union == 1.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_identities_and_references(pairs):
    first, second = as_floats(pairs).T
    table = compare(first, second)
    stronger = max(first.mean(), second.mean())
    assert table.union == pytest.approx(np.maximum(first, second).mean(), abs=1e-12)
    assert table.gain == pytest.approx(float(table.union) - stronger, abs=1e-12)
    assert -1e-12 <= table.gain <= table.gain_bound + 1e-12
    assert table.both_wrong == pytest.approx(((first == 0) & (second == 0)).mean(), abs=1e-12)
    if len(set(first)) == len(set(second)) == 2:
        assert table.phi == pytest.approx(matthews_corrcoef(first, second), abs=1e-9)
