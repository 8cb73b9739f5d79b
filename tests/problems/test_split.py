import pytest

from coterie.datatypes import Problem, UserError
from coterie.problems.canonical import problem_key
from coterie.problems.chains import ChainSettings, ChainSource
from coterie.problems.prepare import ProblemSettings
from coterie.problems.source import ProblemSet
from coterie.problems.split import contaminated_keys, hold_out, part, sample
from coterie.problems.stream import ProblemStream
from tests.problems.conftest import golds, numbered


def test_one_file_for_both_is_split():
    source = numbered(20)
    evaluation, exclude = hold_out(source, source, 5, seed=1)
    assert len(evaluation) == 5
    stream = ProblemStream(source, exclude=exclude)
    assert sorted(golds(evaluation) + golds(stream.take(15))) == list(range(20))
    assert hold_out(source, source, 5, seed=1)[0] == evaluation
    assert hold_out(source, source, 5, seed=2)[0] != evaluation


def test_repeated_questions_stay_on_one_side():
    # Each question is there twice, the second time spelt differently.
    twice = [Problem(f"a{i}", f"What is {i}?", str(i)) for i in range(10)]
    twice += [Problem(f"b{i}", f"what  is {i} ?", str(i)) for i in range(10)]
    source = ProblemSet("twice", twice)
    evaluation, exclude = hold_out(source, source, 4)
    assert len(set(golds(evaluation))) == 4
    # The first spelling is the one that is asked.
    assert {problem.id[0] for problem in evaluation} == {"a"}
    left = ProblemStream(source, exclude=exclude).take(12)
    assert not set(golds(left)) & set(golds(evaluation))
    assert len(set(golds(left))) == 6


def test_a_test_set_stays_whole_and_is_taken_from_training():
    training, test = numbered(20), numbered(8, start=15, name="test")
    evaluation, exclude = hold_out(test, training)
    assert golds(evaluation) == list(range(15, 23))
    assert sorted(golds(ProblemStream(training, exclude=exclude).take(15))) == list(range(15))
    # More than there are is all of them; fewer are a seeded choice in the set's order.
    assert golds(hold_out(test, training, 500)[0]) == list(range(15, 23))
    few = golds(hold_out(test, training, 3, seed=4)[0])
    assert len(few) == 3
    assert few == sorted(few)


def test_a_generator_gives_different_problems_and_training_avoids_them():
    training = ChainSource(ChainSettings(mix=(1, 0, 0), min_length=2, max_length=2))
    evaluation, exclude = hold_out(training, training, 500)
    assert len({problem_key(problem) for problem in evaluation}) == 500
    taken = ProblemStream(training, 0, exclude, epoch_size=100).take(1000)
    assert not {problem_key(problem) for problem in taken} & exclude
    assert len(hold_out(ChainSource(), training)[0]) == 512


def test_impossible_wishes_are_refused():
    source = numbered(5)
    with pytest.raises(UserError, match="5 different problems, so holding out 5"):
        hold_out(source, source, 5)
    with pytest.raises(UserError, match="5 different problems, so holding out 512"):
        hold_out(source, source)
    with pytest.raises(UserError, match="held_out is 0"):
        ProblemSettings(held_out=0)
    narrow = ChainSource(ChainSettings(mix=(1, 0, 0), min_length=1, max_length=1))
    with pytest.raises(UserError, match="only 200 different problems"):
        hold_out(narrow, source, 201)


@pytest.mark.parametrize(
    ("size", "train", "evaluation"),
    # AIME 1983-2025, GPQA main and MATH as arXiv:2601.21600 divides them.
    [(963, 770, 193), (448, 358, 90), (12500, 10000, 2500)],
)
def test_parts_have_the_published_sizes(size, train, evaluation):
    source = numbered(size)
    left, right = part(source, "train"), part(source, "eval")
    assert (left.size, right.size) == (train, evaluation)
    assert sorted([*golds(left), *golds(right)]) == list(range(size))
    assert golds(right) != list(range(train, size))
    chronological = part(source, "eval", order="given")
    assert golds(chronological) == list(range(train, size))


def test_an_empty_part_is_refused():
    with pytest.raises(UserError, match="leaves the train part empty"):
        part(numbered(1), "train")


def test_samples_are_seeded_and_leave_out_what_is_excluded():
    exclude = frozenset(numbered(10).keys)
    first = sample(numbered(30), 5, 1, exclude)
    assert first.size == 5
    assert all(gold >= 10 for gold in golds(first))
    assert golds(first) == golds(sample(numbered(30), 5, 1, exclude))
    assert golds(first) != golds(sample(numbered(30), 5, 2, exclude))
    assert sample(numbered(30), 500, 1, exclude).size == 20
    drawn = sample(ChainSource(), 5, exclude=frozenset({problem_key(ChainSource()[1])}))
    assert [problem.id for problem in drawn] == [ChainSource()[i].id for i in (0, 2, 3, 4, 5)]
    with pytest.raises(UserError, match="limit is 0"):
        ProblemSettings(limit=0)


def test_a_generator_is_not_decontaminated():
    with pytest.raises(UserError, match=r"generated.*leave out --problems.decontaminate"):
        contaminated_keys(ChainSource(), numbered(1))
