import json
import os
from decimal import Decimal

import pyarrow
import pyarrow.parquet
import pytest

from coterie.datatypes import UserError
from coterie.problems.columns import Columns
from coterie.problems.files import load_file

GOOD = [{"question": f"What is {n} + 1?", "answer": f"#### {n + 1}"} for n in range(3)]


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def lines(rows):
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def as_jsonl(folder, rows):
    return write(folder / "set.jsonl", lines(rows))


def as_json(folder, rows):
    return write(folder / "set.json", json.dumps(rows, indent=1))


def as_wrapped_json(folder, rows):
    return write(folder / "set.json", json.dumps({"version": 1, "data": rows, "tags": []}))


def as_lines_named_json(folder, rows):
    return write(folder / "set.json", lines(rows))


def as_parquet(folder, rows):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "set.parquet")
    return folder / "set.parquet"


@pytest.mark.parametrize(
    "save", [as_jsonl, as_json, as_wrapped_json, as_lines_named_json, as_parquet]
)
def test_every_kind_of_file_gives_the_same_problems(tmp_path, save):
    source = load_file(save(tmp_path, GOOD))
    assert source.size == 3
    assert [problem.id for problem in source] == ["set:0", "set:1", "set:2"]
    assert [problem.gold for problem in source] == ["1", "2", "3"]
    assert source[1].question == "What is 1 + 1?"
    # The same content has the same fingerprint in every kind of file.
    (tmp_path / "other").mkdir()
    assert source.fingerprint == load_file(as_jsonl(tmp_path / "other", GOOD)).fingerprint


def test_fingerprint_depends_on_content_and_order(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    prints = {
        load_file(as_jsonl(tmp_path, GOOD)).fingerprint,
        load_file(as_jsonl(tmp_path / "a", GOOD[::-1])).fingerprint,
        load_file(
            as_jsonl(tmp_path / "b", [*GOOD[:2], {**GOOD[2], "answer": "#### 4"}])
        ).fingerprint,
    }
    assert len(prints) == 3


def test_index_past_the_end(tmp_path):
    source = load_file(as_jsonl(tmp_path, GOOD))
    with pytest.raises(IndexError):
        source[3]
    with pytest.raises(IndexError):
        source[-1]


def test_a_byte_order_mark_blank_lines_and_windows_ends_are_fine(tmp_path):
    text = "\ufeff" + lines(GOOD).replace("\n", "\r\n\r\n")
    assert load_file(write(tmp_path / "set.jsonl", text)).size == 3


def test_a_line_separator_inside_a_string_is_no_new_line(tmp_path):
    rows = [{"question": "a\u2028b\x85c?", "answer": "1"}]
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    assert load_file(write(tmp_path / "set.jsonl", text))[0].question == "a\u2028b\x85c?"


OK = json.dumps(GOOD[0])
NESTED = '{"question": "Q?", "answer": ' + "[" * 700 + '"1"' + "]" * 700 + "}"


def then(row, **odd):
    """A row, and one of another type in a column of it: the first says how a file is read."""
    return lines([row, row | odd])


MMLU = {"question": "Which?", "choices": ["a", "b"], "answer": 1}
LABELLED = {
    "question": "Which?",
    "choices": {"label": ["A", "B"], "text": ["x", "y"]},
    "answerKey": "A",
}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.jsonl", f"{OK}\n{OK[:-5]}\n", "a.jsonl line 2: not valid JSON"),
        (
            "a.jsonl",
            f"{OK}\n\n[1]\n",
            "a.jsonl line 3: expected an object with columns, found list",
        ),
        ("a.jsonl", f'{OK}\n{{"question": "Q?"}}', "line 2: no column 'answer'; found question"),
        ("a.jsonl", f'{OK}\n{{"question": "", "answer": "1"}}', "line 2: the question is empty"),
        (
            "a.jsonl",
            f'{OK}\n{{"question": "Q?", "answer": "It is\\n1"}}',
            "line 2: 'answer' has no '##",
        ),
        ("a.jsonl", f'{OK}\n{{"question": "Q?", "answer": null}}', "line 2: 'answer' is missing"),
        ("a.jsonl", f'{OK}\n{{"question": NaN, "answer": "1"}}', "line 2: 'question' is missing"),
        ("a.jsonl", OK.encode() + b"\n\xff\xfe", "line 2: not UTF-8 text .byte 0xff."),
        ("a.jsonl", then(MMLU, choices=None), "line 2: 'choices' is missing"),
        ("a.jsonl", then(MMLU, choices=5), "line 2: 'choices' is int, not a list"),
        ("a.jsonl", then(LABELLED, choices=["a"]), "line 2: there are 1 options, not 2"),
        ("a.jsonl", NESTED, "line 1: a value is nested too deeply"),
        ("a.jsonl", "", "a.jsonl holds no problems; it needs at least one"),
        ("a.jsonl", '{"a": 1, "b": 2}', "columns a, b; name them with --problems.question-column"),
        ("a.jsonl", '{"prompt": "Q?"}', "columns prompt; .* add a column 'answer' with any text"),
        ("a.json", "[]", "a.json holds no problems"),
        ("a.json", "5", "must hold a list of objects"),
        ("a.json", f"[{OK},\n{OK}\n", "a.json line 3: not valid JSON"),
        ("a.json", f"[{OK}, 3]", "a.json entry 2: expected an object"),
        ("a.json", f'{{"x": [{OK}], "y": [{OK}]}}', "2 lists of problems"),
        ("a.json", '{"x": 1}', "0 lists of problems"),
        ("a.parquet", "no parquet", "not a readable Parquet file"),
        ("a.csv", "question,answer\n", "a.csv holds no problems"),
        ("a.csv", "question;answer\nQ?;4\n", "no commas between its columns; .* tabs as a .tsv"),
        ("a.csv", "question,question,answer\nQ?,Hint,4\n", "a.csv has two columns 'question'"),
        ("a.jsonl", '{"question": "Q?", "answer": "4", "answer": "5"}', "'answer' is given twice"),
        (
            "a.jsonl",
            '{"question": "Q?", "answer": "4", "final_answer": "5"}',
            "line 1: 'answer' is '4' and 'final_answer' '5'; name one with --problems.answer-col",
        ),
        ("a.txt", "question,answer\n", "unknown kind of file; use one that ends in .jsonl"),
    ],
)
def test_broken_files_are_one_sentence_with_their_place(tmp_path, name, content, sentence):
    path = write(tmp_path / name, content)
    with pytest.raises(UserError, match=sentence) as caught:
        load_file(path)
    assert "\n" not in str(caught.value)


def test_what_no_format_thought_of(tmp_path, monkeypatch):
    def read_row(*args, **more):
        raise OverflowError("odd")

    monkeypatch.setattr("coterie.problems.files.read_row", read_row)
    with pytest.raises(UserError, match=r"line 1: a value .* gsm8k .*OverflowError"):
        load_file(as_jsonl(tmp_path, GOOD))


def test_what_is_no_file(tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, sentence in (
        ("none", "no problem file"),
        ("folder", "is a folder; .*, or hub:.*folder.jsonl for a folder in the hub's layout"),
        ("pipe", "is a pipe or a device"),
    ):
        with pytest.raises(UserError, match=sentence):
            load_file(tmp_path / f"{name}.jsonl")


def test_two_columns_of_one_name_in_parquet(tmp_path):
    columns = [pyarrow.array(["Q?"]), pyarrow.array(["4"]), pyarrow.array(["5"])]
    table = pyarrow.Table.from_arrays(columns, names=["question", "answer", "answer"])
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet has two columns 'answer'"):
        load_file(tmp_path / "a.parquet")


def test_a_short_answer_beside_the_final_one_has_to_agree(tmp_path):
    row = {"question": "Q?", "answer": "$4$", "final_answer": "4"}
    worked = row | {"answer": "We add 2 and 2 and get four, which is the answer."}
    loaded = load_file(write(tmp_path / "a.jsonl", lines([row, worked])))
    assert [problem.gold for problem in loaded] == ["4", "4"]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"question": pyarrow.array([], pyarrow.string())}, "holds no problems"),
        (
            {"added": pyarrow.array([2**62], pyarrow.timestamp("us"))},
            "not a readable Parquet file after row 0: .*date value out of range",
        ),
        (
            {"added": pyarrow.array([2**62], pyarrow.duration("ms"))},
            "not a readable Parquet file after row 0: .*too large",
        ),
    ],
)
def test_broken_parquet(tmp_path, table, sentence):
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=sentence):
        load_file(tmp_path / "a.parquet")


def test_exact_decimals_are_numbers(tmp_path):
    rows = [{"question": "Half of 3?", "answer": Decimal("1.50")}]
    problem = load_file(as_parquet(tmp_path, rows))[0]
    assert (problem.gold, problem.kind) == ("1.5", "number")


def test_columns_by_name(tmp_path):
    rows = [{"task": "What is 2 + 2?", "result": 4.0, "question": "wrong", "answer": "9"}]
    path = as_jsonl(tmp_path, rows)
    problem = load_file(path, Columns("task", "result"))[0]
    assert (problem.question, problem.gold, problem.kind) == ("What is 2 + 2?", "4", "number")
    assert load_file(path, Columns(question="task"))[0].gold == "9"
    assert load_file(path, Columns(answer="result"))[0].question == "wrong"
    assert load_file(path, Columns("task", "result", "text"))[0].kind == "text"


def test_named_columns_that_are_not_there(tmp_path):
    path = as_jsonl(tmp_path, [{"task": "Q?", "result": 4}])
    for columns, sentence in (
        (Columns("tusk", "result"), r"no question column 'tusk' .*question-c.*SOURCE\?question="),
        (Columns("task"), r"no answer column among task, result; .*answer-c.*SOURCE\?answer="),
        (Columns("task", "result", ignore=("hint",)), r"no column 'hint' .*SOURCE\?ignore="),
    ):
        with pytest.raises(UserError, match=sentence):
            load_file(path, columns)
    with pytest.raises(UserError, match="answer kind 'choice'"):
        Columns(kind="choice")


def test_dapo_repetitions_are_dropped(tmp_path):
    row = {"prompt": [{"role": "user", "content": "What is 2 + 2?"}],
           "reward_model": {"ground_truth": "4"}}  # fmt: skip
    other = {**row, "prompt": [{"role": "user", "content": "What is 1 + 3?"}]}
    source = load_file(as_jsonl(tmp_path, [row, row, other, row]))
    # Ids say the row that was kept.
    assert [problem.id for problem in source] == ["set:0", "set:2"]
