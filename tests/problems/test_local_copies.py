"""Known data sets from the folder that COTERIE_DATA names, in the hub's format."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.datatypes import UserError
from coterie.problems.hub import HUB_SETS
from coterie.problems.opening import check_source, open_source
from coterie.problems.prepare import ProblemSettings, prepare
from coterie.problems.sizes import measured


def svamp(number: int) -> dict[str, str]:
    body = f"Ann has {number} pens and finds 2 more"
    return {
        "ID": f"chal-{number}",
        "Body": body,
        "Question": "How many pens has she?",
        "Equation": f"( {number}.0 + 2.0 )",
        "Answer": f"{number + 2}.0",
        "Type": "Addition",
        "question_concat": f"{body}. How many pens has she?",
    }


def asdiv(number: int) -> dict[str, str]:
    return {
        "body": f"A shelf has {number} books.",
        "question": "How many books have three shelves?",
        "solution_type": "Multiplication",
        "answer": f"{3 * number} (books)",
        "formula": f"3*{number}={3 * number}",
    }


def gsm8k(number: int) -> dict[str, str]:
    return {
        "question": f"Tom walks {number} km a day. How far in a week?",
        "answer": f"7 * {number} = <<7*{number}={7 * number}>>{7 * number}\n#### {7 * number}",
    }


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of local copies; the hub cannot be reached."""
    import datasets

    def offline(*_, **__) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    return tmp_path


def test_files_of_splits_are_the_splits(data: Path) -> None:
    train = write(data / "gsm8k_train.jsonl", [gsm8k(n) for n in range(3)])
    write(data / "gsm8k-test.jsonl", [gsm8k(n) for n in (8, 9)])
    source = open_source("gsm8k")
    assert [source[place].gold for place in range(3)] == ["0", "7", "14"]
    assert (source.size, source[2].id, source.name) == (3, "gsm8k-train:2", "gsm8k (train)")
    assert source.notes == (f"read from {train}",)  # type: ignore[attr-defined]
    evaluation = open_source("gsm8k", purpose="eval")
    assert [evaluation[place].gold for place in range(2)] == ["56", "63"]
    assert open_source("gsm8k?split=test").fingerprint == evaluation.fingerprint


@pytest.mark.parametrize(
    ("name", "row", "first"),
    [
        ("svamp", svamp, "Ann has 0 pens and finds 2 more. How many pens has she?"),
        ("asdiv", asdiv, "A shelf has 0 books. How many books have three shelves?"),
    ],
)
def test_one_file_for_all_is_divided(data: Path, name: str, row, first: str) -> None:
    write(data / f"{name}.jsonl", [row(n) for n in range(10)])
    sides = [open_source(name, purpose=purpose) for purpose in ("train", "eval")]  # type: ignore
    assert [side.size for side in sides] == [8, 2]
    problems = [side[place] for side in sides for place in range(side.size or 0)]
    golds = [n + 2 for n in range(10)] if name == "svamp" else [3 * n for n in range(10)]
    assert sorted(float(problem.gold) for problem in problems) == golds
    assert {problem.id for problem in problems} == {f"{name}:{n}" for n in range(10)}
    assert first in {problem.question for problem in problems}
    last = open_source(f"{name}?order=given", purpose="eval") if name == "asdiv" else None
    assert last is None or [last[place].gold for place in (0, 1)] == ["24", "27"]


def test_a_run_measures_with_the_part_that_does_not_train(data: Path) -> None:
    write(data / "svamp.jsonl", [svamp(n) for n in range(50)])
    prepared = prepare(ProblemSettings("svamp", held_out=6))
    assert (prepared.train.available, len(prepared.evaluation)) == (40, 6)
    assert prepared.notes[0].endswith(f"read from {data / 'svamp.jsonl'}.")


def test_a_set_that_only_measures_stays_whole(data: Path) -> None:
    write(data / "math500.jsonl", [{"problem": f"{n} + 1", "answer": f"{n + 1}"} for n in range(5)])
    assert open_source("math500", purpose="eval").size == 5
    assert open_source("math500?split=test").size == 5
    with pytest.raises(UserError, match="no split to train on"):
        open_source("math500")


def test_a_folder_has_the_hubs_layout(publish, tmp_path: Path, monkeypatch) -> None:
    rows = {"train": [svamp(n) for n in range(4)], "test": [svamp(n) for n in (7, 9)]}
    Path(publish({"default": rows})).rename(tmp_path / "svamp")
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    assert [float(open_source("svamp")[place].gold) for place in range(4)] == [2, 3, 4, 5]
    evaluation = open_source("svamp", purpose="eval")
    assert [float(evaluation[place].gold) for place in range(2)] == [9, 11]


def test_what_has_no_copy_comes_from_the_hub(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(data / "svamp.jsonl", [svamp(n) for n in range(10)])
    for text in ("asdiv", "svamp?revision=abc", "svamp?config=main"):
        with pytest.raises(UserError, match="could not be fetched from the hub"):
            open_source(text)
    monkeypatch.delenv("COTERIE_DATA")
    with pytest.raises(UserError, match="svamp could not be fetched from the hub"):
        open_source("svamp")


def test_a_set_that_lies_on_this_disk_has_no_copy(publish, tmp_path: Path, monkeypatch) -> None:
    repo = publish({"default": {"train": [svamp(n) for n in range(4)]}})
    monkeypatch.setitem(HUB_SETS, "svamp", replace(HUB_SETS["svamp"], repo=repo))
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    write(tmp_path / "svamp_train.jsonl", [svamp(9)])
    assert open_source("svamp").size == 4


def test_mistakes_are_one_sentence(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write(data / "svamp.jsonl", [svamp(n) for n in range(10)])
    with pytest.raises(UserError, match=r"svamp.jsonl holds all of svamp; leave out split=test"):
        open_source("svamp?split=test", purpose="eval")
    write(data / "gsm8k_test.jsonl", [{"question": "Q?", "answer": ""}])
    with pytest.raises(UserError, match=r"gsm8k_test.jsonl line 1: the answer is empty"):
        open_source("gsm8k", purpose="eval")
    (data / "svamp.json").write_text(whole.read_text())
    with pytest.raises(UserError, match=r"are both copies of svamp; keep one"):
        open_source("svamp")
    monkeypatch.setenv("COTERIE_DATA", str(data / "none"))
    with pytest.raises(UserError, match=r"COTERIE_DATA names .*none, which is no folder"):
        open_source("svamp")
    check_source("hub:owner/name")  # what is no known name does not look there


def test_a_plan_knows_what_measures(data: Path) -> None:
    assert measured(["svamp"], None) == 300
    assert measured(["asdiv"], None) == 461
    write(data / "svamp.jsonl", [svamp(1)])
    assert measured(["svamp"], 50) is None
    write(data / "svamp_test.jsonl", [svamp(1)])
    assert measured(["svamp"], 50) == 50
