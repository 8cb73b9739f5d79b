import json

import pytest

from coterie.datatypes import UserError
from coterie.problems.canonical import problem_key
from coterie.problems.prepare import ProblemSettings, prepare


def save(path, numbers):
    rows = [{"question": f"What is {i}?", "answer": str(i)} for i in numbers]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return str(path)


def test_the_default_holds_out_512_generated_problems():
    prepared = prepare(ProblemSettings(), seed=1)
    keys = {problem_key(problem) for problem in prepared.evaluation}
    assert len(prepared.evaluation) == len(keys) == 512
    taken = prepared.train.take(3000)
    assert not {problem_key(problem) for problem in taken} & keys
    assert prepared.train.epoch_size == 1024
    again = prepare(ProblemSettings(), seed=1)
    assert again.evaluation == prepared.evaluation
    assert again.fingerprints == prepared.fingerprints
    assert again.train.take(3000) == taken


def test_the_same_generator_and_seed_for_both_still_never_meet():
    text = "chains?seed=5"
    prepared = prepare(ProblemSettings(train=text, eval=(text,), held_out=300))
    keys = {problem_key(problem) for problem in prepared.evaluation}
    assert not {problem_key(problem) for problem in prepared.train.take(1000)} & keys


def test_two_files_share_nothing(tmp_path):
    train, test = save(tmp_path / "a.jsonl", range(30)), save(tmp_path / "b.jsonl", range(25, 40))
    prepared = prepare(ProblemSettings(train=train, eval=(test,)))
    assert [problem.gold for problem in prepared.evaluation] == [str(i) for i in range(25, 40)]
    assert prepared.train.available == 25
    assert prepared.fingerprints["train"] != prepared.fingerprints["eval"]


def test_several_sets_measure_whole(tmp_path):
    train = save(tmp_path / "train.jsonl", range(30))
    first, second = (
        save(tmp_path / "a.jsonl", range(25, 40)),
        save(tmp_path / "b.jsonl", (0, 26, 50)),
    )
    prepared = prepare(ProblemSettings(train=train, eval=(first, second)))
    golds = [problem.gold for problem in prepared.evaluation]
    assert golds == [*map(str, range(25, 40)), "0", "26", "50"]
    assert [problem.id for problem in prepared.evaluation][-3:] == ["b:0", "b:1", "b:2"]
    # What either holds does not train.
    assert prepared.train.available == 24
    assert set(prepared.fingerprints) == {"train", f"eval {first}", f"eval {second}"}
    few = prepare(ProblemSettings(train=train, eval=(first, second), held_out=2))
    assert [problem.id[0] for problem in few.evaluation] == ["a", "a", "b", "b"]


def test_sets_of_the_same_name_are_told_apart(tmp_path):
    sets = []
    for name, numbers in (("x", range(3)), ("y", range(9, 12))):
        (tmp_path / name).mkdir()
        sets.append(save(tmp_path / name / "test.jsonl", numbers))
    prepared = prepare(ProblemSettings(eval=tuple(sets)))
    ids = [f"{name}-test/test:{row}" for name in "xy" for row in range(3)]
    assert [problem.id for problem in prepared.evaluation] == ids
    assert prepared.sets_of_problem == (("x-test",),) * 3 + (("y-test",),) * 3


def test_a_problem_of_two_sets_counts_in_both(tmp_path):
    levels = (1, 1, 2, 2, 2, 3)
    rows = [
        {"question": f"What is {i}?", "answer": str(i), "level": level}
        for i, level in enumerate(levels)
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    low, high = f"{file}?where=level:1|2", f"{file}?where=level:2|3"
    prepared = prepare(ProblemSettings(eval=(low, high)))
    # Ids are those of the whole file: level 2 has three problems, which both sets have.
    assert [problem.id for problem in prepared.evaluation] == [f"a:{i}" for i in range(6)]
    first, second = (f"{tmp_path.name}-a.jsonl?where=level:{pair}" for pair in ("1|2", "2|3"))
    assert [names[0][-3:] for names in prepared.sets_of_problem] == ["1|2"] * 5 + ["2|3"]
    assert [len(names) for names in prepared.sets_of_problem] == [1, 1, 2, 2, 2, 1]
    assert prepared.sets_of_problem[2][0].endswith(first)
    assert prepared.sets_of_problem[2][1].endswith(second)


def test_generators_may_share_problems():
    texts = ("chains?mix=1,0,0&max_length=3", "chains?mix=0.5,0.5,0&max_length=3")
    alone = [
        {problem.id for problem in prepare(ProblemSettings(eval=(text,), held_out=200)).evaluation}
        for text in texts
    ]
    shared = alone[0] & alone[1]
    assert shared
    prepared = prepare(ProblemSettings(eval=texts, held_out=200))
    assert len(prepared.evaluation) == 400 - len(shared)
    names = {p.id: {*sets} for p, sets in zip(prepared.evaluation, prepared.sets_of_problem)}
    for number, ids in enumerate(alone):
        # Each set is what it is alone.
        name = next(iter({*names[next(iter(ids - shared))]}))
        assert {id for id, sets in names.items() if name in sets} == ids, number


@pytest.mark.parametrize("purpose", ["train", "eval"])
def test_the_same_problems_twice_are_refused(purpose, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, copy = save(tmp_path / "a.jsonl", range(9)), save(tmp_path / "b.jsonl", range(9))

    def settings(*texts):
        return ProblemSettings(**{purpose: texts}, held_out=2)

    with pytest.raises(UserError, match=rf"^--problems.{purpose} names a.jsonl twice; name each"):
        settings("a.jsonl", "a.jsonl")
    for other in (path, "./a.jsonl", copy):
        with pytest.raises(UserError, match=rf"^--problems.{purpose} names the same problems as a"):
            prepare(settings("a.jsonl", other))
    with pytest.raises(UserError, match=r"the same problems as chains and as chains\?mix="):
        prepare(settings("chains", "chains?mix=0.25,0.25,0.5"))
    streams = ("chains?seed=1", "chains?seed=2")
    assert prepare(settings(*streams)).evaluation


def test_a_limit_counts_problems_that_are_left(tmp_path):
    train, test = save(tmp_path / "a.jsonl", range(30)), save(tmp_path / "b.jsonl", range(25))
    prepared = prepare(ProblemSettings(train=train, eval=(test,), limit=4))
    assert prepared.train.available == prepared.train.epoch_size == 4
    assert {int(problem.gold) for problem in prepared.train.take(4)} < set(range(25, 30))
    few = prepare(ProblemSettings(limit=6, held_out=5))
    assert few.train.available == 6
    assert few.train.take(6) != few.train.take(6)  # another order in the next pass


def test_several_sources_train_and_each_holds_out(tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    first, second = (
        save(tmp_path / "x" / "train.jsonl", range(26)),
        save(tmp_path / "y" / "train.jsonl", range(40, 50)),
    )
    settings = ProblemSettings(train=(f"{first}=2", f"{second}=1"), held_out=4)
    assert (settings.sources, settings.weights) == ((first, second), (2.0, 1.0))
    prepared = prepare(settings)
    # 22 and 6 are left, 28 in an epoch: 18.67 and 9.33.
    assert (prepared.train.available, prepared.train.epoch_size) == (28, 28)
    epoch = prepared.train.take(28)
    assert sum(problem.id.startswith("x-train/train:") for problem in epoch) == 19
    assert sum(problem.id.startswith("y-train/train:") for problem in epoch) == 9
    assert prepared.sets_of_problem == (("x-train",),) * 4 + (("y-train",),) * 4
    assert [problem.id[0] for problem in prepared.evaluation] == ["x"] * 4 + ["y"] * 4
    assert not {problem.question for problem in prepared.evaluation} & {p.question for p in epoch}
    purposes = [name.partition(" ")[0] for name in prepared.fingerprints]
    assert purposes == ["train", "train", "eval", "eval"]
    # Without weights an epoch has every problem once.
    plain = prepare(ProblemSettings(train=(first, second), held_out=4)).train
    assert len({problem.id for problem in plain.take(28)}) == plain.epoch_size == 28
    few = prepare(ProblemSettings(train=(first, "chains"), held_out=4, limit=5)).train
    assert [source.size for source in few.sources] == [5, 5]


def test_one_file_is_split_and_has_no_names(tmp_path):
    path = save(tmp_path / "a.jsonl", range(30))
    prepared = prepare(ProblemSettings(train=(path,), held_out=10))
    assert prepared.sets_of_problem == ()
    assert (len(prepared.evaluation), prepared.train.available) == (10, 20)
    assert prepared.evaluation == prepare(ProblemSettings(train=path, held_out=10)).evaluation
    several = prepare(ProblemSettings(train=path, eval=("chains", "recall"), held_out=1))
    assert several.sets_of_problem == (("chains",), ("recall",))


def test_a_set_that_overlaps_with_one_source_leaves_all_of_them(tmp_path):
    story = " ".join(f"word{i}" for i in range(13))
    for name, ends in (("a", ("then", "here")), ("b", ("now", "there")), ("c", ("soon",))):
        rows = [{"question": f"{story} {end} {name}?", "answer": "1"} for end in ends]
        rows.append({"question": f"{name} else?", "answer": "1"})
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    a, b, c = (str(tmp_path / f"{name}.jsonl") for name in "abc")
    settings = ProblemSettings(train=(a, b), eval=(c,), decontaminate=True)
    assert {p.question for p in prepare(settings).train.take(2)} == {"a else?", "b else?"}


def test_an_order_by_difficulty_needs_problems_that_come_again():
    with pytest.raises(UserError, match=r"recall generates new ones: add --problems.limit 1024"):
        prepare(ProblemSettings(train=("recall", "chains"), order="adaptive", limit=None))
    limited = prepare(ProblemSettings(train="chains", order="adaptive", limit=6, held_out=5))
    assert limited.train.by_difficulty
    assert limited.train.epoch_size == 6
