import dataclasses

import numpy as np
import pytest

from coterie.algorithms import ALGORITHMS, Algorithm, assign_credit, get
from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.credit import advantages, advantages_of_terms, reward_terms
from coterie.datatypes import Trajectory, UserError

PAIR = np.array([1.0, 3.0, 0.0, 4.0])
GROUP = np.array([0, 0, 1, 1])


def row(reward: float, group: str = "p", status: str = "ok", sampled: bool = True) -> Trajectory:
    return Trajectory(
        agent="a_0",
        role="a",
        tokens=np.array([1, 2]),
        mask=np.array([False, sampled]),
        logprobs=np.zeros(2, np.float32),
        reward=reward,
        reward_terms={},
        groups={"problem": group, "all": "one"},
        status=status,
    )


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        (Algorithm(scale="none"), [-1, 1, -2, 2]),
        # leave one out: 1 - 3, 3 - 1, 0 - 4, 4 - 0
        (Algorithm(scale="none", baseline="leave-one-out"), [-2, 2, -4, 4]),
        # population deviations 1 and 2
        (Algorithm(ddof=0, epsilon=0), [-1, 1, -1, 1]),
        # unbiased deviations sqrt(2) and sqrt(8)
        (Algorithm(ddof=1, epsilon=0), [-(0.5**0.5), 0.5**0.5, -(0.5**0.5), 0.5**0.5]),
        # 1 / (1 + 1), 2 / (2 + 1)
        (Algorithm(ddof=0, epsilon=1), [-1 / 2, 1 / 2, -2 / 3, 2 / 3]),
        # differences -1 1 -2 2: population deviation sqrt(10 / 4), unbiased sqrt(10 / 3)
        (Algorithm(scale="batch-std", ddof=0, epsilon=0), np.array([-1, 1, -2, 2]) / 2.5**0.5),
        (
            Algorithm(scale="batch-std", ddof=0, epsilon=1),
            np.array([-1, 1, -2, 2]) / (2.5**0.5 + 1),
        ),
        (Algorithm(scale="batch-std", epsilon=0), np.array([-1, 1, -2, 2]) / (10 / 3) ** 0.5),
    ],
)
def test_hand_derived(algorithm, expected):
    np.testing.assert_allclose(advantages(PAIR, GROUP, algorithm), expected, rtol=1e-12)


def test_core_joint_group():
    # The worked example of CoRe (arXiv:2601.21600, equation 7): six traces, one joint group.
    reward = np.array([0.025, 0.023, 1.45, 0.0, 1.46, 1.31])
    got = advantages(reward, np.zeros(6, np.intp), get("gspo-paper"))
    np.testing.assert_allclose(got, [-0.9846, -0.9875, 1.0597, -1.0205, 1.0740, 0.8588], atol=5e-5)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_equal_rewards_and_groups_of_one_get_exactly_zero(name):
    # 0.1 + 0.2 differs from 0.3 by rounding only.
    reward = np.array([0.1 + 0.2, 0.3, 0.3, 7.0, 1.0, 2.0])
    got = advantages(reward, np.array([0, 0, 0, 1, 2, 2]), get(name))
    assert (got[:4] == 0).all()
    assert got[4] < 0 < got[5]


@pytest.mark.parametrize(
    ("rewards", "difference"),
    [
        # 0.1 + 0.2 is not 0.3: rounding, next to nothing and at every size and sign.
        ([0.1 + 0.2 - 0.3, 0.0], 0.0),
        ([1e9 * (0.1 + 0.2), 1e9 * 0.3], 0.0),
        ([-1e9 * (0.1 + 0.2), -1e9 * 0.3], 0.0),
        # A ten-thousandth is none.
        ([1e-4, 0.0], 5e-5),
    ],
)
def test_what_is_rounding_depends_on_the_size_of_rewards(rewards, difference):
    got = advantages(np.array(rewards), np.zeros(2, np.intp), Algorithm(scale="none"))
    np.testing.assert_allclose(got, [difference, -difference], rtol=1e-12)


def test_batch_deviation_ignores_groups_of_one():
    algorithm = Algorithm(scale="batch-std", ddof=0, epsilon=0)
    alone = advantages(np.append(PAIR, 9.0), np.append(GROUP, 2), algorithm)
    np.testing.assert_array_equal(alone[:4], advantages(PAIR, GROUP, algorithm))


def test_unusable_rows_count_in_no_statistic():
    rows = [row(1), row(100, status="timeout"), row(3), row(50, sampled=False)]
    rows += [row(0, "q"), row(4, "q")]
    credit = assign_credit(rows, "problem", Algorithm(scale="none"))
    np.testing.assert_array_equal(credit.advantage_B, [-1, 0, 1, 0, -2, 2])
    # rewards 1 3 0 4: mean 2, population deviation sqrt((1 + 1 + 4 + 4) / 4)
    counts = {"groups": 2, "group_size": 2, "singletons": 0, "zero_variance": 0}
    assert credit.stats == pytest.approx(counts | {"reward": 2, "reward_std": 2.5**0.5})
    rows = [row(1), row(1), row(0, "q"), row(2, "q"), row(5, "r")]
    counts = {"groups": 3, "group_size": 5 / 3, "singletons": 1, "zero_variance": 0.5}
    stats = assign_credit(rows, "problem", Algorithm()).stats
    assert {name: stats[name] for name in counts} == pytest.approx(counts)


def test_the_key_decides_which_rows_are_compared():
    rows = [row(1), row(3), row(0, "q"), row(4, "q")]
    got = assign_credit(rows, "all", Algorithm(scale="none")).advantage_B
    np.testing.assert_array_equal(got, [-1, 1, -2, 2])  # mean 2, as it happens
    rows[0] = dataclasses.replace(rows[0], reward=5.0)
    got = assign_credit(rows, "all", Algorithm(scale="none")).advantage_B
    np.testing.assert_array_equal(got, [2, 0, -3, 1])  # mean 3


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_agent_with_several_rows_is_compared_once(name):
    algorithm = dataclasses.replace(get(name), length=0, reduction="token-mean")
    rewards = [1.0, 0.0, 0.3, 0.7, 0.1]
    rows = [row(reward, "p" if i < 3 else "q") for i, reward in enumerate(rewards)]
    plain = assign_credit(rows, "problem", algorithm)
    named = [dataclasses.replace(row, member=f"e/a_{i}") for i, row in enumerate(rows)]
    assert assign_credit(named, "problem", algorithm).advantage_B.tolist() == (
        plain.advantage_B.tolist()
    )
    # The second agent's context began anew twice; one of its rows stands apart from the others.
    split = [named[0], named[1], named[1], *named[2:], named[1]]
    got = assign_credit(split, "problem", algorithm)
    np.testing.assert_allclose(got.advantage_B, plain.advantage_B[[0, 1, 1, 2, 3, 4, 1]], rtol=1e-9)
    assert got.stats == pytest.approx(plain.stats)


def test_an_agent_is_compared_in_each_of_its_groups():
    rows = [row(1), row(3), row(0, "q"), row(4, "q")]
    named = [dataclasses.replace(row, member=f"e/a_{i % 2}") for i, row in enumerate(rows)]
    got = assign_credit(named, "problem", Algorithm(scale="none")).advantage_B
    assert got.tolist() == [-1, 1, -2, 2]


def test_several_rows_by_hand():
    # 1 against 0 0 0 is 3/4 and -1/4 by rows; by agents it is 1/2 and -1/2.
    rows = [row(1), *(dataclasses.replace(row(0), member="e/b_0") for _ in range(3))]
    got = assign_credit(rows, "problem", Algorithm(scale="none")).advantage_B
    assert got.tolist() == [0.5, -0.5, -0.5, -0.5]
    # A penalty on the length of one of them counts by its share: (0 + 0 - 3) / 3 = -1.
    rows[3] = dataclasses.replace(rows[3], reward=-3.0)
    got = assign_credit(rows, "problem", Algorithm(scale="none")).advantage_B
    assert got.tolist() == [1, -1, -1, -1]
    # Alone in its group it has nobody to be compared with.
    with pytest.raises(UserError, match="single row"):
        assign_credit(rows[1:], "problem", Algorithm())


def test_a_failed_row_needs_no_group():
    failed = dataclasses.replace(row(0, status="timeout"), groups={})
    got = assign_credit([row(1), row(3), failed], "problem", Algorithm(scale="none")).advantage_B
    assert got.tolist() == [-1, 1, 0]


def test_a_wrong_key_is_refused():
    with pytest.raises(UserError, match="'role'; known keys: all, problem"):
        assign_credit([row(1), row(2)], "role", Algorithm())
    with pytest.raises(UserError, match="single row"):
        assign_credit([row(1, "p"), row(2, "q")], "problem", Algorithm())


def test_what_rewards_do_not_teach_needs_nobody_to_compare_with():
    taught = Algorithm(distillation=Distillation(beta=1.0, teacher="t", rewards=False))
    credit = assign_credit([row(1, "p"), row(2, "q")], "problem", taught)
    assert credit.advantage_B.tolist() == [0, 0]


def test_a_group_that_lost_its_members_is_not_a_wrong_key():
    rows = [row(1), row(2, status="timeout")]
    assert assign_credit(rows, "problem", Algorithm()).advantage_B.tolist() == [0, 0]


def above_the_best(reward_N, group_N):
    return reward_N - reward_N.max()


def test_no_rows_and_no_usable_rows():
    rows = [row(1, status="timeout"), row(2, status="timeout")]
    own = Algorithm(advantage=f"{__name__}:above_the_best")
    for algorithm in (*ALGORITHMS.values(), own):
        assert assign_credit([], "problem", algorithm).advantage_B.shape == (0,)
        assert assign_credit(rows, "problem", algorithm).advantage_B.tolist() == [0, 0]


def test_rewards_must_be_finite():
    with pytest.raises(UserError, match="a_0 the reward nan"):
        assign_credit([row(1), row(float("nan"))], "problem", Algorithm())


def test_terms_scaled_one_by_one_count_the_same():
    # First term: means 1/2 and 1/2, population deviations 1/2: -1 1 -1 1. The second, a hundred
    # times as large, over the first group alone: 1 -1 0 0. Sum: 0 0 -1 1, batch deviation
    # sqrt(2 / 4).
    term_NK = np.array([[0.0, 100.0], [1.0, 0.0], [0.0, 7.0], [1.0, 7.0]])
    algorithm = Algorithm(combine="normalise-then-sum", ddof=0, epsilon=0)
    got = advantages_of_terms(term_NK, GROUP, algorithm)
    np.testing.assert_allclose(got, np.array([0, 0, -1, 1]) / 0.5**0.5, atol=1e-12)


def test_terms_that_cancel_out_give_exactly_zero():
    # Where one is 1, the other is 0: their sum is rounding, and no deviation scales it up.
    first = np.array([1.0, 0.0, 0.0])
    term_NK = np.stack([first, 1 - first], axis=1)
    algorithm = Algorithm(combine="normalise-then-sum", epsilon=0)
    got = advantages_of_terms(term_NK, np.zeros(3, np.intp), algorithm)
    assert got.tolist() == [0, 0, 0]


def test_a_missing_term_is_zero():
    rows = [dataclasses.replace(row(0), reward_terms=terms) for terms in ({"a": 2.0}, {"b": 3.0})]
    assert reward_terms(rows).tolist() == [[2, 0], [0, 3]]


def test_terms_enter_credit_only_where_asked():
    terms = [{"a": 0.0, "b": 10.0}, {"a": 1.0, "b": 0.0}, {"a": 0.0}, {"a": 1.0, "b": 5.0}]
    rows = [
        dataclasses.replace(row(sum(row_terms.values()), f"p{place // 2}"), reward_terms=row_terms)
        for place, row_terms in enumerate(terms)
    ]
    summed = assign_credit(rows, "problem", Algorithm(ddof=0, epsilon=0)).advantage_B
    np.testing.assert_allclose(summed, [1, -1, -1, 1])
    combined = Algorithm(combine="normalise-then-sum", ddof=0, epsilon=0)
    apart = assign_credit(rows, "problem", combined).advantage_B
    # -1 + 1, 1 - 1, -1 - 1, 1 + 1: deviation sqrt(8 / 4)
    np.testing.assert_allclose(apart, np.array([0, 0, -2, 2]) / 2**0.5, atol=1e-12)


AVERAGE = Algorithm(baseline="role-average", scale="none", baseline_decay=0.5)


def test_a_running_average_of_a_role_is_a_baseline():
    """b_a = 0.4 and b_b = 0 before the step; a earns 1 and 0, b earns 3."""
    rows = [row(1), dataclasses.replace(row(3), role="b"), row(0, "q")]
    credit = assign_credit(rows, "problem", AVERAGE, {"a": 0.4})
    np.testing.assert_allclose(credit.advantage_B, [0.6, 3.0, -0.4])
    # b_a: .5 x .4 + .5 x 1 = .7, then .5 x .7 + .5 x 0 = .35; b_b: .5 x 0 + .5 x 3 = 1.5
    assert credit.averages == pytest.approx({"a": 0.35, "b": 1.5})
    assert credit.stats["baseline_b"] == pytest.approx(1.5)
    # over sqrt((.36 + 9 + .16) / 3)
    scaled = dataclasses.replace(AVERAGE, scale="batch-std", ddof=0, epsilon=0)
    got = assign_credit(rows, "problem", scaled, {"a": 0.4}).advantage_B
    np.testing.assert_allclose(got, np.array([0.6, 3.0, -0.4]) / (9.52 / 3) ** 0.5)


def test_one_row_alone_has_no_deviation():
    scaled = dataclasses.replace(AVERAGE, scale="batch-std", ddof=0, epsilon=0)
    assert assign_credit([row(1)], "problem", scaled).advantage_B.tolist() == [0]


def test_the_default_decay_is_that_of_the_paper():
    credit = assign_credit([row(1)], "problem", Algorithm(baseline="role-average", scale="none"))
    assert credit.averages == pytest.approx({"a": 0.05})  # b <- .95 b + .05 r


def test_the_rows_of_an_agent_move_a_running_average_once():
    rows = [dataclasses.replace(row(1), member="e/a_0")] * 3
    assert assign_credit(rows, "problem", AVERAGE).averages == {"a": 0.5}


def test_other_baselines_leave_averages_as_they_are():
    rows = [row(1), row(3)]
    assert assign_credit(rows, "problem", Algorithm(), {"a": 0.4}).averages == {"a": 0.4}
