import numpy as np
import pytest

from evaluation.metrics.rescue import HintCounts, hint_counts, rescue_rates
from rewards.rescue import COLD, HINT

# Alice solves it cold, bob does not; of bob's five second tries three saw the hint.
ROLE = ["alice", "alice", "bob", "bob", "bob", "bob", "bob", "bob", "bob", "alice", "alice"]
ROUND = [COLD] * 4 + [HINT] * 7
CORRECT = [1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1]
HINTED = [0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0]


def test_one_question():
    counts = hint_counts(CORRECT, HINTED, ROLE, ROUND)
    # Bob: 2 of 3 rescued, 1 of 2 recovered without. Alice saw it and fell below her 1/2.
    assert counts == HintCounts(
        eligible=3, rescued=2, retried=2, recovered=1, helped=2, hurt=1, neutral=1
    )
    assert hint_counts(CORRECT, HINTED, ROLE, ROUND, role="alice") == HintCounts(
        eligible=0, rescued=0, retried=0, recovered=0, helped=0, hurt=1, neutral=0
    )


def test_nobody_solved_it():
    counts = hint_counts([0] * 11, HINTED, ROLE, ROUND)
    assert (counts.eligible, counts.retried) == (0, 0)


def question(eligible=0, rescued=0, retried=0, recovered=0, helped=0, hurt=0, neutral=0):
    return HintCounts(eligible, rescued, retried, recovered, helped, hurt, neutral)


def test_rates():
    rates = rescue_rates(
        [
            question(2, 2, 1, 0, helped=2),
            question(2, 1, 1, 1, helped=1, hurt=1),
            question(4, 3, 0, 0, helped=3, neutral=1),
            question(0, 0, 2, 0),
        ]
    )
    assert (rates.rescue.value, rates.rescue.count) == (0.75, 8)
    assert (rates.control.value, rates.control.count) == (0.25, 4)
    assert rates.advantage.value == 0.5
    assert rates.advantage.low <= 0.5 <= rates.advantage.high
    # Two questions have both kinds: 1 - 0 and 1/2 - 1.
    assert rates.matched.value == pytest.approx(0.25, abs=1e-15)
    assert rates.matched.count == 2
    # (6 - 1) / 8
    assert rates.lift.value == pytest.approx(0.625, abs=1e-15)


def test_nothing_to_rescue():
    rates = rescue_rates([question(), question()])
    assert np.isnan([rates.rescue.value, rates.advantage.value, rates.lift.low]).all()
    assert np.isnan(rescue_rates([]).rescue.value)
