from coterie.envs.core_teaching.evaluation import HintCounts, hint_counts
from coterie.rewards.rescue import COLD, HINT

# Alice solves it cold, bob does not; of bob's five second tries three saw the hint.
ROLE = ["alice", "alice", "bob", "bob", "bob", "bob", "bob", "bob", "bob", "alice", "alice"]
ROUND = [COLD] * 4 + [HINT] * 7
CORRECT = [1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1]
HINTED = [0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0]
CONTROL = [0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0]


def test_one_question():
    counts = hint_counts(CORRECT, HINTED, ROLE, ROUND, CONTROL)
    # Bob: 2 of 3 rescued, 1 of 2 recovered without. Alice saw it and fell below her 1/2.
    assert counts == HintCounts(
        eligible=3, rescued=2, retried=2, recovered=1, helped=2, hurt=1, neutral=1
    )


def test_nobody_solved_it():
    counts = hint_counts([0] * 11, HINTED, ROLE, ROUND, [0] * 11)
    assert (counts.eligible, counts.retried) == (0, 0)


def test_a_second_try_without_a_hint_to_be_had_is_no_control():
    # The peer was right with nothing but an answer, so there was no hint for bob.
    counts = hint_counts([1, 0, 1], [0, 0, 0], ["alice", "bob", "bob"], [COLD, COLD, HINT], [0] * 3)
    assert (counts.eligible, counts.retried, counts.recovered) == (0, 0, 0)
