import pytest

from coterie.datatypes import Problem, UserError
from coterie.problems.canonical import problem_key
from coterie.problems.chains import ChainSettings, ChainSource
from coterie.problems.source import ProblemSet
from coterie.problems.stream import ProblemStream
from tests.problems.conftest import numbered


def ids(problems):
    return [problem.id for problem in problems]


def test_each_pass_is_a_new_permutation():
    stream = ProblemStream(numbered(50), seed=1)
    passes = [ids(stream.take(50)) for _ in range(3)]
    everything = {f"s:{i}" for i in range(50)}
    assert all(set(each) == everything for each in passes)
    assert passes[0] != passes[1] != passes[2]
    assert passes[0] != ids(numbered(50))
    assert ids(ProblemStream(numbered(50), seed=2).take(50)) != passes[0]


def test_shuffles_are_uniform():
    """Each problem stands first about equally often."""
    first = [0] * 5
    for seed in range(2000):
        first[int(ProblemStream(numbered(5), seed).at(0).gold)] += 1
    # Chi-squared with four degrees of freedom: above 18.5 one time in a thousand.
    assert sum((count - 400) ** 2 / 400 for count in first) < 18.5


@pytest.mark.parametrize("source", [numbered(7), ChainSource()], ids=["finite", "generator"])
def test_resuming_at_a_cursor_is_exact(source):
    exclude = frozenset(problem_key(source[index]) for index in (0, 2, 5))
    whole = ids(ProblemStream(source, 3, exclude, epoch_size=4).take(40))
    for cut in (0, 1, 6, 7, 23):
        resumed = ProblemStream(source, 3, exclude, epoch_size=4)
        resumed.cursor = cut
        assert ids(resumed.take(40 - cut)) == whole[cut:]
        assert resumed.cursor == 40
    # The size of the bites does not matter.
    bites = ProblemStream(source, 3, exclude, epoch_size=4)
    assert ids([problem for n in (3, 1, 9, 27) for problem in bites.take(n)]) == whole


def test_excluded_problems_never_appear():
    exclude = frozenset({problem_key(Problem("", "what is  3 ?", ""))})
    stream = ProblemStream(numbered(5), exclude=exclude)
    assert stream.available == 4
    assert set(ids(stream.take(8))) == {"s:0", "s:1", "s:2", "s:4"}


def test_a_generator_replaces_what_is_excluded():
    source = ChainSource(ChainSettings(mix=(1, 0, 0), min_length=1, max_length=1))  # 200 chains
    exclude = frozenset(problem_key(source[index]) for index in range(100))
    taken = ProblemStream(source, 0, exclude, epoch_size=10).take(500)
    assert not {problem_key(problem) for problem in taken} & exclude
    # No problem near by is handed out twice instead.
    first = frozenset({problem_key(ChainSource()[0])})
    assert len(set(ids(ProblemStream(ChainSource(), 0, first, epoch_size=10).take(50)))) == 50
    # A free index is the problem of that cursor.
    wide = ProblemStream(ChainSource(), 0, exclude, epoch_size=10)
    assert ids(wide.take(20)) == ids(ChainSource()[index] for index in range(20))


def test_nothing_left_is_refused():
    every = frozenset(numbered(3).keys)
    with pytest.raises(UserError, match="none of its 3 problems is left"):
        ProblemStream(numbered(3), exclude=every)
    with pytest.raises(UserError, match="none of its 0 problems"):
        ProblemStream(ProblemSet("empty", []))
    narrow = ChainSource(ChainSettings(mix=(1, 0, 0), min_length=1, max_length=1))
    every = frozenset(problem_key(narrow[index]) for index in range(5000))
    assert len(every) == 200  # 10 digits, 2 signs, 10 digits
    with pytest.raises(UserError, match="nearly all"):
        ProblemStream(narrow, exclude=every, epoch_size=10)


def test_epochs_follow_the_cursor():
    stream = ProblemStream(numbered(4))
    assert stream.epoch_size == 4
    assert stream.epoch == 0
    stream.take(3)
    assert stream.epoch == 0
    stream.take(1)
    assert stream.epoch == 1
    endless = ProblemStream(ChainSource(), epoch_size=100)
    endless.cursor = 250
    assert (endless.epoch, endless.available) == (2, None)
    assert ProblemStream(ChainSource()).epoch_size == 1024
    with pytest.raises(ValueError, match="cannot be -1"):
        endless.cursor = -1


def test_the_order_is_drawn_anew_when_rows_are_left_out():
    stream = ProblemStream(numbered(6))
    first = stream.take(6)
    gone = {first[0].id, first[3].id}
    assert stream.leave_out(lambda problem: problem.id in gone, "why") == 2
    stream.cursor = 0
    kept = {problem.id for problem in stream.take(4)}
    assert kept == {problem.id for problem in first} - gone


def test_a_generator_replaces_what_does_not_fit():
    stream = ProblemStream(ChainSource(), epoch_size=4)
    assert stream.leave_out(lambda problem: len(problem.question) > 20, "why") == 0
    assert all(len(problem.question) <= 20 for problem in stream.take(100))
    with pytest.raises(UserError, match="all are too long"):
        stream.leave_out(lambda problem: True, "all are too long")
