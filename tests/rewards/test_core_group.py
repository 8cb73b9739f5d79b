"""CoRe's reward terms on one question worked out by hand (arXiv:2601.21600, eqs. 2-7)."""

import numpy as np
import pytest

from coterie.rewards.exploitation import exploitation, trace_accuracy
from coterie.rewards.exploration import cross_model, exploration, greedy_set
from coterie.rewards.rescue import COLD, HINT, rescue_candidates, rescues

# Traces 0, 1: the first model, cold, wrong. 2: the second model, cold, right. 3: it, cold, wrong.
# 4, 5: one hinted trace of each, both right.
ROLE = np.array(["m1", "m1", "m2", "m2", "m1", "m2"])
ROUND = np.array([COLD, COLD, COLD, COLD, HINT, HINT])
CORRECT = np.array([0, 0, 1, 0, 1, 1], dtype=bool)
HINTED = np.array([0, 0, 0, 0, 1, 1], dtype=bool)
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
EXPLOIT = exploitation(CORRECT, CORRECT, 0.3)


def close(value, wanted, tolerance=1e-12):
    np.testing.assert_allclose(value, wanted, rtol=0, atol=tolerance)


def test_exploitation_pays_one_and_alpha():
    close(EXPLOIT, [0, 0, 1.3, 0, 1.3, 1.3])


def test_rescue_is_the_hinted_trace_of_the_model_that_failed():
    assert rescues(CORRECT, HINTED, ROLE, ROUND).tolist() == [0, 0, 0, 0, 1, 0]


def test_trace_accuracy_of_both_versions():
    # One of four cold traces is right (rho 1/4), two of two hinted ones (rho 1).
    close(trace_accuracy(CORRECT, ROUND, "v2"), [0, 0, 0.75, 0, 0, 0])
    close(trace_accuracy(CORRECT, ROUND, "v1"), [0, 0, 0.25, 0, 1, 1])


def test_cross_model_pays_wrong_traces_unless_told_not_to():
    settings = {"threshold": 0.1, "margin": 0.15}
    # Trace 0: its nearest partner is 2 at .40; trace 1: 2 at .38. Traces 2, 3: partner all wrong.
    literal = cross_model(DISTANCE, EXPLOIT, ROLE, ROUND, **settings)
    close(literal, [0.25, 0.23, 0, 0, 0.10, 0.10])
    gated = cross_model(DISTANCE, EXPLOIT, ROLE, ROUND, **settings, requires_correct_B=CORRECT)
    close(gated, [0, 0, 0, 0, 0.10, 0.10])


def test_greedy_set_stops_at_the_margin_and_nobody_is_paid():
    # From 2: 4 is .45 away, then 0 (.30), then 5 (.20), then 3 only .10.
    assert greedy_set(DISTANCE, EXPLOIT, margin=0.15, cap=10) == ([2, 4, 0, 5], "margin")
    paid = exploration(DISTANCE, EXPLOIT, mode="literal", margin=0.15, cap=10)
    assert paid.tolist() == [0] * 6


def test_total_reward_and_advantages():
    reward = (
        1.0 * EXPLOIT
        + 0.2 * exploration(DISTANCE, EXPLOIT, mode="literal", margin=0.15, cap=10)
        + 0.15 * rescues(CORRECT, HINTED, ROLE, ROUND)
        + 0.2 * trace_accuracy(CORRECT, ROUND, "v2")
        + 0.1 * cross_model(DISTANCE, EXPLOIT, ROLE, ROUND, threshold=0.1, margin=0.15)
    )
    close(reward, [0.025, 0.023, 1.45, 0, 1.46, 1.31])
    close(reward.mean(), 0.711333, 5e-7)
    close(reward.std(), 0.697063, 5e-7)
    advantage = (reward - reward.mean()) / (reward.std() + 1e-8)
    close(advantage, [-0.9846, -0.9875, 1.0597, -1.0205, 1.0740, 0.8588], 5e-5)


@pytest.mark.parametrize("wrong", range(5))
def test_rescue_needs_all_five_conditions(wrong):
    """Round, correct, hinted, own failure, success of a peer: flipping any one ends it."""
    # The trace in question is the last one; "a" wrote it, "b" is the peer.
    role = ["a", "a", "b", "b", "a"]
    round_ = [COLD, COLD, COLD, COLD, HINT]
    correct = np.array([0, 0, 0, 1, 1], dtype=bool)
    hinted = np.array([0, 0, 0, 0, 1], dtype=bool)
    assert rescues(correct, hinted, role, round_).tolist() == [0, 0, 0, 0, 1]
    assert rescue_candidates(correct, hinted, role, round_).tolist() == [0, 0, 0, 0, 1]
    if wrong == 0:
        round_[4] = COLD
    elif wrong == 1:
        correct[4] = False
    elif wrong == 2:
        hinted[4] = False
    elif wrong == 3:
        correct[1] = True
    else:
        correct[3] = False
    assert not rescues(correct, hinted, role, round_).any()
    # A wrong answer is a rescue that failed: it stays in the denominator.
    assert rescue_candidates(correct, hinted, role, round_).any() == (wrong == 1)


def test_no_rescue_for_a_role_that_never_tried_cold():
    role, round_ = ["b", "a"], [COLD, HINT]
    assert not rescues([True, True], [False, True], role, round_).any()


def test_rounds_are_named_by_their_constants():
    with pytest.raises(ValueError, match="rounds are 0"):
        rescues([True], [True], ["a"], ["B"])
