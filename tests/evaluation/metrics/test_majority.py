from coterie.evaluation.metrics.passk import Vote, majority_vote


def test_most_votes_win():
    vote = majority_vote(
        {"alice": ["7", "8"], "bob": ["8", None]}, {"alice": [False, True], "bob": [True, False]}
    )
    assert vote == Vote(winner="8", correct=1.0, expected=1.0)


def test_ties_go_to_the_first_cast_in_sorted_order():
    # alice votes before bob however the mapping is ordered; three answers tie, one is right.
    answers = {"bob": ["9"], "alice": ["7", "8"]}
    correct = {"bob": [False], "alice": [False, True]}
    assert majority_vote(answers, correct) == Vote(winner="7", correct=0.0, expected=1 / 3)


def test_two_of_two_tied():
    answers = {"a": ["1", "2", "1", "2", "3"]}
    correct = {"a": [True, False, True, False, False]}
    assert majority_vote(answers, correct) == Vote(winner="1", correct=1.0, expected=0.5)


def test_an_answer_is_as_right_as_its_first_vote():
    assert majority_vote({"a": ["1", "1"]}, {"a": [True, False]}).correct == 1.0


def test_silence_is_no_vote():
    assert majority_vote({"a": [None, None, "5"]}, {"a": [0, 0, 1]}).winner == "5"
    assert majority_vote({"a": [None]}, {"a": [False]}) == Vote(None, 0.0, 0.0)
