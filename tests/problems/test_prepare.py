import json

import pytest

from problems.canonical import problem_key
from problems.prepare import ProblemSettings, prepare
from vocabulary import UserError


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
    prepared = prepare(ProblemSettings(train=text, eval=text, held_out=300))
    keys = {problem_key(problem) for problem in prepared.evaluation}
    assert not {problem_key(problem) for problem in prepared.train.take(1000)} & keys


def test_one_file_is_split(tmp_path):
    path = save(tmp_path / "a.jsonl", range(30))
    prepared = prepare(ProblemSettings(train=path, held_out=10))
    assert len(prepared.evaluation) == 10
    assert (prepared.train.available, prepared.removed) == (20, 10)


def test_two_files_share_nothing(tmp_path):
    train, test = save(tmp_path / "a.jsonl", range(30)), save(tmp_path / "b.jsonl", range(25, 40))
    prepared = prepare(ProblemSettings(train=train, eval=test))
    assert [problem.gold for problem in prepared.evaluation] == [str(i) for i in range(25, 40)]
    assert (prepared.train.available, prepared.removed) == (25, 5)
    assert prepared.fingerprints["train"] != prepared.fingerprints["eval"]


def test_a_limit_counts_problems_that_are_left(tmp_path):
    train, test = save(tmp_path / "a.jsonl", range(30)), save(tmp_path / "b.jsonl", range(25))
    prepared = prepare(ProblemSettings(train=train, eval=test, limit=4))
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
    settings = ProblemSettings(train=str(train), eval=str(test))
    assert prepare(settings).train.available == 2
    strict = ProblemSettings(train=str(train), eval=str(test), decontaminate=True)
    assert prepare(strict).train.available == 1
    with pytest.raises(UserError, match=r"leave out --problems.decontaminate"):
        prepare(ProblemSettings(decontaminate=True, held_out=5))


def test_a_training_file_inside_the_evaluation_file_is_refused(tmp_path):
    train, test = save(tmp_path / "a.jsonl", range(5)), save(tmp_path / "b.jsonl", range(9))
    with pytest.raises(UserError, match="none of its 5 problems is left"):
        prepare(ProblemSettings(train=train, eval=test))
