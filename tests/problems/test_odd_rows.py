"""The first row says how a file is read; what later rows hold instead is one sentence."""

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from coterie.datatypes import UserError
from coterie.problems.files import load_file

MMLU = {"question": "Which?", "choices": ["a", "b"], "answer": 1}
CSQA = {
    "question": "Which?",
    "choices": {"label": ["A", "B"], "text": ["x", "y"]},
    "answerKey": "A",
}
OLYMPIAD = {"question": "How many?", "final_answer": ["1"], "error": None}
PLAIN = {"question": "How many?", "answer": "1"}


def nested(depth: int) -> Any:
    value: Any = "1"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("row", "odd", "sentence"),
    [
        (MMLU, {"choices": None}, "'choices' is missing"),
        (MMLU, {"choices": 5}, "'choices' is int, not a list"),
        (MMLU, {"choices": "abcd"}, "'choices' is str, not a list"),
        (CSQA, {"choices": None}, "'choices' is missing"),
        (CSQA, {"choices": ["a"]}, "'choices' is list, not an object with 'label' and 'text'"),
        (OLYMPIAD, {"error": 10**400}, "not a tolerance such as 0.1"),
        (PLAIN, {"answer": nested(700)}, "a value is nested too deeply"),
    ],
)
def test_a_later_row(tmp_path: Path, row: Any, odd: Any, sentence: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(f"{json.dumps(row)}\n{json.dumps(row | odd)}\n")
    with pytest.raises(UserError) as refusal:
        load_file(path)
    assert str(refusal.value).startswith(f"{path} line 2: ")
    assert sentence in str(refusal.value)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "set.jsonl")
    with pytest.raises(UserError, match="is a pipe or a device"):
        load_file(tmp_path / "set.jsonl")


def test_a_first_row(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(PLAIN | {"answer": nested(700)}))
    with pytest.raises(UserError, match="line 1: a value is nested too deeply"):
        load_file(path)


@pytest.mark.parametrize("error", [TypeError, AttributeError, OverflowError, KeyError])
def test_what_no_format_thought_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def read_row(*args: Any, **more: Any) -> Any:
        raise error("odd")

    monkeypatch.setattr("coterie.problems.files.read_row", read_row)
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(PLAIN))
    with pytest.raises(UserError, match=rf"line 1: a value .* question\+answer .*{error.__name__}"):
        load_file(path)


def test_exact_decimals_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    rows = [{"question": "Half of 3?", "answer": Decimal("1.50")}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    problem = load_file(path)[0]
    assert (problem.gold, problem.kind) == ("1.5", "number")


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pyarrow.array([2**62], pyarrow.timestamp("us")), "date value out of range"),
        (pyarrow.array([2**62], pyarrow.duration("ms")), "too large"),
    ],
)
def test_dates_that_no_calendar_has(tmp_path: Path, column: Any, sentence: str) -> None:
    path = tmp_path / "set.parquet"
    pyarrow.parquet.write_table(
        pyarrow.table({"question": ["How many?"], "answer": ["1"], "added": column}), path
    )
    with pytest.raises(UserError, match=f"not a readable Parquet file after row 0: .*{sentence}"):
        load_file(path)
