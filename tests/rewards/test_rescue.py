import numpy as np

from coterie.rewards.rescue import COLD, HINT, hint_lift, hint_outcomes, teacher_lift

# Alice taught (cold 1/2, trace 0 is right). Bob failed cold twice, carol was right once of one.
ROLE = ["alice", "alice", "bob", "bob", "carol", "alice", "bob", "bob", "carol", "dave"]
ROUND = [COLD] * 5 + [HINT] * 5
CORRECT = [1, 0, 0, 0, 1, 1, 1, 0, 0, 1]
HINTED = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]


def test_lift_is_against_the_own_cold_rate():
    # alice 1 - 1/2; bob 1 - 0 and 0 - 0; carol 0 - 1; dave never tried cold.
    lift = hint_lift(CORRECT, HINTED, ROLE, ROUND)
    assert np.isnan(lift[:5]).all()
    assert lift[5:9].tolist() == [0.5, 1.0, 0.0, -1.0]
    assert np.isnan(lift[9])
    wanted = [None] * 5 + ["helped", "helped", "neutral", "hurt", None]
    assert hint_outcomes(lift) == wanted


def test_the_teacher_is_paid_for_others():
    # Bob's two and carol's: (1 + 0 - 1) / 3. Alice's own lift is not her merit.
    assert teacher_lift(CORRECT, HINTED, ROLE, ROUND, teacher=0) == 0.0
    without_carol = [*HINTED[:8], 0, 0]
    assert teacher_lift(CORRECT, without_carol, ROLE, ROUND, teacher=0) == 0.5
    # Had carol taught: alice .5, bob 1 and 0.
    assert teacher_lift(CORRECT, HINTED, ROLE, ROUND, teacher=4) == 0.5


def test_nobody_saw_the_hint():
    assert teacher_lift(CORRECT, [0] * 10, ROLE, ROUND, teacher=0) == 0.0
