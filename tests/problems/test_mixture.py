"""Weights of sources, and the problems of each in an epoch."""

import re
from collections import Counter
from pathlib import Path

import pytest

from coterie.datatypes import Problem, UserError
from coterie.problems.chains import ChainSettings, ChainSource
from coterie.problems.gym import GymSource
from coterie.problems.mixture import counts_of_epoch, read_mixture, short_names, split_weight
from coterie.problems.prepare import ProblemSettings
from coterie.problems.source import Interleaved, ProblemSet, with_distinct_ids
from coterie.problems.stream import ProblemStream


def numbered(name: str, n: int) -> ProblemSet:
    return ProblemSet(name, [Problem(f"{name}:{i}", f"{name} {i}?", str(i)) for i in range(n)])


def by_source(problems: list[Problem]) -> Counter[str]:
    return Counter(problem.id.partition(":")[0] for problem in problems)


@pytest.mark.parametrize(
    ("text", "source", "weight"),
    [
        ("chains", "chains", None),
        ("gsm8k=2", "gsm8k", 2.0),
        ("my/a.jsonl=.5", "my/a.jsonl", 0.5),
        ("a=b.jsonl=1e1", "a=b.jsonl", 10.0),
        ("a=b.jsonl", "a=b.jsonl", None),
        # The only = of an option is the option's.
        ("chains?max_length=4", "chains?max_length=4", None),
        ("chains?max_length=4=2", "chains?max_length=4", 2.0),
        ("chains?mix=1,0,0&seed=3", "chains?mix=1,0,0&seed=3", None),
        ("hub:o/n?split=train=3", "hub:o/n?split=train", 3.0),
        ("a.jsonl?where=level:x%3D2", "a.jsonl?where=level:x%3D2", None),
        ("lang=en/a.jsonl", "lang=en/a.jsonl", None),
        ("a.jsonl?where=level:x=two", "a.jsonl?where=level:x=two", None),
    ],
)
def test_a_weight_ends_a_source(text: str, source: str, weight: float | None) -> None:
    assert split_weight(text) == (source, weight)


def test_a_file_of_the_whole_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("sums=2", "what?.jsonl"):
        Path(name).write_text("{}")
    assert split_weight("sums=2") == ("sums=2", None)
    assert split_weight("sums=2=3") == ("sums=2", 3.0)
    assert split_weight("what?.jsonl=2") == ("what?.jsonl", 2.0)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ((), "names no problems"),
        (("a=0", "b=1"), "a weight is a number above 0"),
        (("a=-1", "b=1"), "a weight is a number above 0"),
        (("a=1e999", "b=1"), "a weight is a number above 0"),
        (("a.jsonl=two", "b=1"), "a.jsonl=two: a weight is a number above 0"),
        (("a.jsonl=1/2", "b=1"), "a weight is a number above 0"),
        (("gsm8k=", "b=1"), "a weight is a number above 0"),
        (("chains?max_length=4=two", "b=1"), "a weight is a number above 0"),
        (("a.jsonl=nan", "b=1"), "a weight is a number above 0"),
        (("a=2", "b"), "gives b no weight"),
        (("a=2", "a=1"), "names a twice"),
        (("a", "b", "a"), "names a twice"),
    ],
)
def test_mixtures_that_are_not_clear_are_refused(texts: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_mixture(texts)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("a.jsonl=2", "a.jsonl"),
        ("a.jsonl=two", "a.jsonl"),
        ("x=y/a.jsonl=-1", "x=y/a.jsonl"),
        ("gsm8k=2", "gsm8k"),
        ("hub:owner/name=.5", "hub:owner/name"),
        ("chains=0", "chains"),
        ("chains?max_length=4=2", "chains?max_length=4"),
    ],
)
def test_weights_of_what_has_none_are_refused(text: str, source: str) -> None:
    sentence = rf"^--problems.train {re.escape(text)}: a weight is for one of several sources; "
    with pytest.raises(UserError, match=sentence + rf"write {re.escape(source)},"):
        ProblemSettings(train=text)
    sentence = rf"^--problems.eval {re.escape(text)}: evaluation sets have no weights, .* write "
    with pytest.raises(UserError, match=sentence + rf"{re.escape(source)}$"):
        ProblemSettings(eval=("recall", text))


def test_what_only_looks_like_a_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sums.jsonl=2").write_text("{}")
    Path("lang=2").mkdir()
    for text in (
        *("sums.jsonl=2", "hub:lang=2", "lang=en/a.jsonl", "a=b.jsonl"),
        *("chains?max_length=4", "a.jsonl?where=level:x=2"),
    ):
        assert ProblemSettings(train=text, eval=(text,)).evaluated == (text,)


def test_a_single_source_has_no_weight() -> None:
    assert read_mixture(["a.jsonl?where=level:x=2"]) == (("a.jsonl?where=level:x=2",), None)
    assert read_mixture(["a=2", "b=1"]) == (("a", "b"), (2.0, 1.0))
    assert read_mixture(["a", "b"]) == (("a", "b"), None)


def test_an_epoch_is_divided_by_largest_remainders() -> None:
    assert counts_of_epoch([2, 1], 30) == [20, 10]
    # 31 * 2/3 = 20.67 and 31 * 1/3 = 10.33: the larger remainder gets the last problem.
    assert counts_of_epoch([2, 1], 31) == [21, 10]
    assert counts_of_epoch([1, 2], 31) == [10, 21]
    # 2.33 each: the first of equals.
    assert counts_of_epoch([1, 1, 1], 7) == [3, 2, 2]
    assert counts_of_epoch([0.1, 0.2], 30) == [10, 20]
    assert counts_of_epoch([1e308, 1e308], 4) == [2, 2]
    assert counts_of_epoch([1000, 1], 30) == [30, 0]


def test_without_weights_an_epoch_is_one_pass_of_everything() -> None:
    stream = ProblemStream((numbered("a", 20), numbered("b", 10)), seed=1)
    assert (stream.epoch_size, stream.available) == (30, 30)
    first, second = stream.take(30), stream.take(30)
    assert by_source(first) == {"a": 20, "b": 10}
    assert len({problem.id for problem in first}) == 30
    assert {problem.id for problem in second} == {problem.id for problem in first}
    assert first != second
    # The sources are mixed: 20 of one before 10 of the other is no order.
    assert by_source(first[:20]) != {"a": 20}


def test_weights_divide_an_epoch_and_no_problem_comes_again_too_soon() -> None:
    """2:1 over 30 problems are 20 and 10, although a has 12 problems and b 18."""
    stream = ProblemStream((numbered("a", 12), numbered("b", 18)), seed=3, weights=(2, 1))
    epochs = [stream.take(30) for _ in range(3)]
    assert [by_source(epoch) for epoch in epochs] == [{"a": 20, "b": 10}] * 3
    drawn = [problem.id for epoch in epochs for problem in epoch]
    for name, size in (("a", 12), ("b", 18)):
        own = [id for id in drawn if id.startswith(name)]
        passes = [own[start : start + size] for start in range(0, len(own), size)]
        assert all(len({*each}) == len(each) for each in passes)  # 60 = 5 * 12, 30 = 18 + 12
    # The first epoch has all of a once, and 8 again; 10 different ones of b.
    assert sorted(Counter(p.id for p in epochs[0] if p.id[0] == "a").values()) == [1] * 4 + [2] * 8
    assert len({p.id for p in epochs[0] if p.id[0] == "b"}) == 10


def test_the_size_of_an_epoch_does_not_change_the_shares() -> None:
    stream = ProblemStream((numbered("a", 200), numbered("b", 100)), epoch_size=30)
    assert by_source(stream.take(30)) == {"a": 20, "b": 10}
    assert stream.epoch == 1
    with pytest.raises(UserError, match="an epoch of 30 problems has none of b: raise its weight"):
        ProblemStream((numbered("a", 20), numbered("b", 10)), weights=(1000, 1))


def test_a_generator_counts_as_1024_problems() -> None:
    stream = ProblemStream((ChainSource(), numbered("a", 512)))
    assert (stream.epoch_size, stream.available) == (1536, 512)
    assert by_source(stream.take(1536))["a"] == 512
    assert ProblemStream((ChainSource(), ChainSource(ChainSettings(seed=1)))).available is None


def test_resuming_a_mixture_at_a_cursor_is_exact() -> None:
    sources = (numbered("a", 7), ChainSource(), numbered("b", 3))

    def stream() -> ProblemStream:
        return ProblemStream(sources, 5, epoch_size=12, weights=(3, 2, 1))

    whole = stream().take(60)
    for cut in (0, 5, 12, 31):
        resumed = stream()
        resumed.cursor = cut
        assert resumed.take(60 - cut) == whole[cut:]


def test_what_does_not_fit_is_left_out_of_every_source() -> None:
    stream = ProblemStream((numbered("a", 6), numbered("b", 4)))
    assert stream.leave_out(lambda problem: problem.gold in "05", "why") == 3  # a:0 a:5 b:0
    assert (stream.available, stream.epoch_size) == (7, 7)
    assert by_source(stream.take(7)) == {"a": 4, "b": 3}
    with pytest.raises(UserError, match="b: too long"):
        stream.leave_out(lambda problem: problem.id.startswith("b"), "too long")


def test_the_forms_of_the_first_problems() -> None:
    sources = (numbered("a", 12), ChainSource(), numbered("b", 18))
    for n in (0, 5, 36, 50, 400):
        stream = ProblemStream(sources, 2, epoch_size=36, weights=(3, 1, 2))
        drawn = {p.question for p in stream.take(n) if p.question[0] in "ab"}
        assert stream.forms(n) == {question.removesuffix("?") for question in drawn}
    # By difficulty only whole epochs are known.
    sorted_ = ProblemStream((numbered("a", 12), numbered("b", 18)), epoch_size=10, order="adaptive")
    assert len(sorted_.forms(1)) == 10


def test_names_of_sources_are_short_and_distinct() -> None:
    assert short_names(["gsm8k", "data/sums.jsonl", "hub:owner/name"]) == ["gsm8k", "sums", "name"]
    assert short_names(["/d/a/train.csv", "/d/b/train.csv", "math"]) == [
        "a-train", "b-train", "math",
    ]  # fmt: skip
    views = ["x/a.csv?where=n:1", "x/a.csv?where=n:2"]
    assert short_names(views) == ["x-a.csv?where=n:1", "x-a.csv?where=n:2"]
    same = ["a.csv?where=n:1/2", "a.csv?where=n:1-2"]
    assert short_names(same) == ["a.csv?where=n:1-2 1", "a.csv?where=n:1-2 2"]
    assert short_names(["chains", "chains"]) == ["chains", "chains"]


def test_ids_are_distinct_where_sources_call_their_problems_alike() -> None:
    files = [numbered("train", 2), numbered("train", 3), numbered("math", 1)]
    named = with_distinct_ids(files, ["a-train", "b-train", "math"])
    assert [source[0].id for source in named] == ["a-train/train:0", "b-train/train:0", "math:0"]
    assert [source.fingerprint for source in named] == [source.fingerprint for source in files]
    tasks = [GymSource("gcd"), GymSource("gcd", {"max_numbers": 3})]
    first, second = with_distinct_ids(tasks, ["one", "two"])
    assert (first[4].id, second[4].id) == ("one/gcd:0:4", "two/gcd:0:4")
    assert (first[4].gold, first.name, first.size) == (tasks[0][4].gold, tasks[0].name, None)
    # A chain's id is its question, so that equal ids are one problem.
    chains = [ChainSource(), ChainSource()]
    assert [*with_distinct_ids(chains, ["one", "two"])] == chains


def test_sources_take_turns_where_an_environment_draws() -> None:
    both = Interleaved([numbered("a", 2), ChainSource()])
    assert [both[i].id for i in (0, 2, 4)] == ["a:0", "a:1", "a:0"]
    assert [both[i].id for i in (1, 3)] == [ChainSource()[0].id, ChainSource()[1].id]
    assert both.name == "a chains"
