import random

import numpy as np
import pytest

from coterie.datatypes import UserError
from coterie.problems.gym import NUMBER_TASKS, TASKS, GymSource
from coterie.rewards.grading.scorer import AnswerScorer


@pytest.mark.parametrize("task", TASKS)
def test_every_vetted_task(task):
    """Deterministic, unbounded, and judged alike by our checker and the task's own scorer."""
    from fractions import Fraction

    from reasoning_gym.factory import DATASETS

    scorer = AnswerScorer()
    source, again = GymSource(task, seed=5), GymSource(task, seed=5)
    indices = [0, 1, 2, 10**15]
    problems = [source[index] for index in indices]
    # Asked in another order, a second source gives the same problems.
    assert [again[index] for index in reversed(indices)] == problems[::-1]
    assert len({problem.question for problem in problems}) > 1
    assert [GymSource(task, seed=6)[index].question for index in indices] != [
        problem.question for problem in problems
    ]
    make_dataset, make_config = DATASETS[task]
    for problem in problems:
        assert problem.question
        assert 0 < len(problem.gold) < 200
        assert problem.gold == problem.gold.strip()
        entry = {"answer": problem.gold, "metadata": {}}
        if task in NUMBER_TASKS:
            Fraction(problem.gold)
        written = f"<final_answer>{problem.gold}</final_answer>"
        for other in problems:
            assert scorer.check(written, other).correct == (other.gold == problem.gold)
        if task != "calendar_arithmetic":  # its scorer wants metadata
            theirs = make_dataset(make_config(seed=0, size=1))
            assert theirs.score_answer(problem.gold, entry) == 1.0
            wrong = problem.gold + "1" if task in NUMBER_TASKS else "no such answer"
            assert theirs.score_answer(wrong, entry) < 1.0


def test_a_reseeded_data_set_is_a_fresh_one():
    """Keeping one data set and setting its seed gives what a new one would."""
    from reasoning_gym.factory import DATASETS

    from coterie.datatypes import derive_seed

    for task in ("chain_sum", "gsm_symbolic", "spell_backward", "syllogism"):
        make_dataset, make_config = DATASETS[task]
        source = GymSource(task, seed=1)
        for index in (3, 0):
            seed = derive_seed(1, "reasoning-gym", task, index) % 2**32
            fresh = make_dataset(make_config(seed=seed, size=1))[0]
            assert source[index].question == fresh["question"].strip()
            assert source[index].gold == fresh["answer"]


def test_the_global_random_state_stays():
    random.seed(1)
    np.random.seed(1)
    python, numpy = random.getstate(), np.random.get_state()
    source = GymSource("chain_sum")
    make = source._make
    source._dataset = _Restless(make(0))  # a task that draws from the global generators
    assert source[0].question
    assert random.getstate() == python
    assert np.array_equal(np.random.get_state()[1], numpy[1])
    assert np.random.get_state()[2] == numpy[2]


class _Restless:
    def __init__(self, dataset):
        self.dataset = dataset

    def __getitem__(self, index):
        random.random()
        np.random.random()
        return self.dataset[index]


def test_neighbouring_seeds_share_no_problems():
    first = {GymSource("products", seed=0)[index].question for index in range(50)}
    other = {GymSource("products", seed=1)[index].question for index in range(50)}
    assert len(first & other) < 3


def test_options_reach_the_task_and_the_fingerprint():
    plain = GymSource("chain_sum")
    narrow = GymSource("chain_sum", {"min_terms": 2, "max_terms": 2})
    assert narrow.name == "reasoning-gym:chain_sum?max_terms=2&min_terms=2"
    for index in range(20):
        # "... problem: 12 + 7 =": two terms have one sign between them.
        expression = narrow[index].question.rpartition(":")[2].split()
        assert len(expression) == 4
    prints = {source.fingerprint for source in (plain, narrow, GymSource("chain_sum", seed=1))}
    assert len(prints) == 3
    assert GymSource("chain_sum").fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    ("task", "options", "sentence"),
    [
        ("chain_sums", {}, "unknown reasoning-gym task 'chain_sums'; did you mean 'chain_sum'"),
        ("countdown", {}, "'countdown' has answers that plain comparison cannot judge; use one of"),
        ("chain_sum", {"min_term": 2}, "no option 'min_term'; did you mean 'min_terms'"),
        ("chain_sum", {"size": 2}, "no option 'size'"),
        ("chain_sum", {"min_terms": 5, "max_terms": 2}, "does not take min_terms=5, max_terms=2"),
        ("chain_sum", {"min_terms": "two"}, "does not take min_terms=two"),
    ],
)
def test_mistakes_are_one_sentence(task, options, sentence):
    with pytest.raises(UserError, match=sentence):
        GymSource(task, options)
