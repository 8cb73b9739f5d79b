"""Word problems of one step, as the study of real models uses them."""

import json
from pathlib import Path

import pytest

from coterie.datatypes import UserError
from evidence.real_problems import EVALUATION, READING, STATED, TRAINING, hinted, write_problems


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_problems_of_one_small_step(word_problems: Path, tmp_path: Path) -> None:
    write_problems(tmp_path)
    training, held_out = lines(tmp_path / TRAINING), lines(tmp_path / EVALUATION)
    assert [row["category"] for row in held_out] == ["plus"] * 4 + ["times"] * 4
    assert [row["category"] for row in training].count("plus") == len(training) / 2 == 12
    asked = [row["question"] for row in (*training, *held_out)]
    # Neither large numbers nor two steps nor a remainder.
    assert len({*asked}) == len(asked) == 32
    (ann,) = (
        row for row in (*training, *held_out) if "Ann has 9 eggs and sells" in row["question"]
    )
    assert (ann["answer"], ann["solution"], ann["category"]) == ("7", "9 - 2 = 7", "plus")
    stated = lines(tmp_path / STATED)
    for plain, row in zip(training, stated, strict=True):
        end = f"\n\\boxed{{{plain['answer']}}} \\confidence{{0."
        assert row["solution"][:-2] == plain["solution"] + end
    assert len({row["solution"][-2] for row in stated}) > 2


def test_what_follows_a_hint_is_known_from_the_hint_alone(
    word_problems: Path, tmp_path: Path
) -> None:
    write_problems(tmp_path)
    training, reading = lines(tmp_path / TRAINING), lines(tmp_path / READING)
    assert reading[::2] == training
    for plain, behind in zip(training, reading[1::2], strict=True):
        assert behind["question"] == f"{plain['question']}\n\nHint:\n{behind['solution']}"
        assert behind["solution"].endswith(f" = {behind['answer']}")
        assert behind["category"] == plain["category"]
    fitting = {
        "7 - 2 = 5": {"7 + 2 = 9", "7 - 2 = 5", "7 * 2 = 14"},
        "2 * 8 = 16": {"2 + 8 = 10", "2 * 8 = 16"},
    }
    for step, hints in fitting.items():
        rows = [{"question": f"q{n}", "solution": step} for n in range(40)]
        assert {hinted(row)["solution"] for row in rows} == hints


def test_training_shares_no_thirteen_words_with_what_is_held_out(
    word_problems: Path, tmp_path: Path
) -> None:
    long = " ".join(f"word{n}" for n in range(20))
    rows = lines(word_problems / "asdiv.jsonl")
    plus = [row for row in rows if "sells" in row["body"]]
    for row in plus:
        row["body"] = f"{row['body']} {long}"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (word_problems / "asdiv.jsonl").write_text(text, encoding="utf-8")
    write_problems(tmp_path)
    # Two of ASDiv's are held out, which leaves none of the others, and none of the other kind.
    assert len(lines(tmp_path / TRAINING)) == 12
    assert all("table" in row["question"] for row in lines(tmp_path / TRAINING))


def test_without_the_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    with pytest.raises(UserError, match=r"COTERIE_DATA must name the folder with asdiv.jsonl and"):
        write_problems(tmp_path)
