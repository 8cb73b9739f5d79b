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
    assert prepared.removed is None
    again = prepare(ProblemSettings(), seed=1)
    assert again.evaluation == prepared.evaluation
    assert again.fingerprints == prepared.fingerprints
    assert again.train.take(3000) == taken


def test_the_same_generator_and_seed_for_both_still_never_meet():
    text = "chains?seed=5"
    prepared = prepare(ProblemSettings(train=text, eval=(text,), held_out=300))
    keys = {problem_key(problem) for problem in prepared.evaluation}
    assert not {problem_key(problem) for problem in prepared.train.take(1000)} & keys


def test_one_file_is_split(tmp_path):
    path = save(tmp_path / "a.jsonl", range(30))
    prepared = prepare(ProblemSettings(train=path, held_out=10))
    assert len(prepared.evaluation) == 10
    assert (prepared.train.available, prepared.removed) == (20, 10)


def test_two_files_share_nothing(tmp_path):
    train, test = save(tmp_path / "a.jsonl", range(30)), save(tmp_path / "b.jsonl", range(25, 40))
    prepared = prepare(ProblemSettings(train=train, eval=(test,)))
    assert [problem.gold for problem in prepared.evaluation] == [str(i) for i in range(25, 40)]
    assert (prepared.train.available, prepared.removed) == (25, 5)
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


def test_sets_that_cannot_be_told_apart_are_refused(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    sets = tuple(
        save(tmp_path / name / "test.jsonl", numbers)
        for name, numbers in (("x", range(3)), ("y", range(9, 12)))
    )
    with pytest.raises(UserError, match=r"both call a problem 'test:0'; rename one of the files"):
        prepare(ProblemSettings(eval=sets))
    # What two generators both give is one problem.
    assert len(prepare(ProblemSettings(eval=("chains", "chains"), held_out=8)).evaluation) == 8


def test_a_limit_counts_problems_that_are_left(tmp_path):
    train, test = save(tmp_path / "a.jsonl", range(30)), save(tmp_path / "b.jsonl", range(25))
    prepared = prepare(ProblemSettings(train=train, eval=(test,), limit=4))
    assert prepared.train.available == prepared.train.epoch_size == 4
    assert {int(problem.gold) for problem in prepared.train.take(4)} < set(range(25, 30))
    few = prepare(ProblemSettings(limit=6, held_out=5))
    assert few.train.available == 6
    assert few.train.take(6) != few.train.take(6)  # another order in the next pass


def test_decontamination_drops_shared_wording(tmp_path):
    story = " ".join(f"word{i}" for i in range(13))
    rows = [{"question": f"{story}, and {end}?", "answer": "1"} for end in ("then", "now")]
    rows.append({"question": "Something else?", "answer": "1"})
    train, test = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    train.write_text("\n".join(map(json.dumps, rows[1:])))
    test.write_text(json.dumps(rows[0]))
    settings = ProblemSettings(train=str(train), eval=(str(test),))
    assert prepare(settings).train.available == 2
    strict = ProblemSettings(train=str(train), eval=(str(test),), decontaminate=True)
    assert prepare(strict).train.available == 1
    with pytest.raises(UserError, match=r"leave out --problems.decontaminate"):
        prepare(ProblemSettings(decontaminate=True, held_out=5))


def test_a_training_file_inside_the_evaluation_file_is_refused(tmp_path):
    train, test = save(tmp_path / "a.jsonl", range(5)), save(tmp_path / "b.jsonl", range(9))
    with pytest.raises(UserError, match="none of its 5 problems is left"):
        prepare(ProblemSettings(train=train, eval=(test,)))
