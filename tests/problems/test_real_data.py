"""Real problem sets, read by recognised columns; the folder is named by COTERIE_DATA."""

import os
import re
from pathlib import Path

import pytest

from coterie.problems.canonical import problem_key
from coterie.problems.files import load_file
from coterie.problems.prepare import ProblemSettings, prepare
from coterie.problems.split import same_form, shared_words

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("COTERIE_DATA" not in os.environ, reason="COTERIE_DATA names no folder"),
]
DATA = Path(os.environ.get("COTERIE_DATA", "."))

# file: (problems, different questions)
FILES = {
    "aime24.jsonl": (30, 30),
    "aime25.json": (30, 30),
    "aimo25.json": (10, 10),
    "amc23.jsonl": (40, 40),
    "asdiv.jsonl": (2215, 2214),
    "gsm8k_test.jsonl": (1319, 1319),
    "gsm8k_train.jsonl": (7473, 7473),
    "math500.jsonl": (500, 500),
    "mmlu_stem.jsonl": (3018, 3002),
    "olympiadbench.jsonl": (675, 675),
    "svamp.jsonl": (1000, 1000),
}


def open_set(name):
    if not (DATA / name).exists():
        pytest.skip(f"no {name}")
    return load_file(DATA / name)


@pytest.mark.parametrize("name", FILES)
def test_files_open_by_themselves(name):
    source = open_set(name)
    assert source.size == FILES[name][0]
    assert len({problem.id for problem in source}) == source.size
    for problem in source:
        assert problem.question.strip()
        assert problem.gold.strip()
    assert len(set(source.keys)) == FILES[name][1]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("gsm8k_test.jsonl", r"-?\d+"),
        ("gsm8k_train.jsonl", r"-?\d+"),
        ("aime24.jsonl", r"0|[1-9]\d{0,2}"),
        ("aime25.json", r"0|[1-9]\d{0,2}"),
        ("aimo25.json", r"0|[1-9]\d{0,2}"),
        ("amc23.jsonl", r"-?\d+"),
        ("svamp.jsonl", r"-?\d+(\.\d+)?"),
        ("mmlu_stem.jsonl", r"[A-D]"),
        ("olympiadbench.jsonl", r"[^$]+"),
    ],
)
def test_golds_look_as_they_should(name, pattern):
    odd = [problem.gold for problem in open_set(name) if not re.fullmatch(pattern, problem.gold)]
    assert odd == []


def test_kinds():
    assert {problem.kind for problem in open_set("gsm8k_test.jsonl")} == {"number"}
    assert {problem.kind for problem in open_set("mmlu_stem.jsonl")} == {"choice"}
    kinds = [problem.kind for problem in open_set("olympiadbench.jsonl")]
    assert kinds.count("list") == 94


def test_choices_stand_in_the_question():
    for problem in open_set("mmlu_stem.jsonl"):
        gold = problem.choices["ABCD".index(problem.gold)]
        assert f"\n{problem.gold}. {gold}" in problem.question


def test_gsm8k_is_prepared_whole():
    open_set("gsm8k_train.jsonl")
    settings = ProblemSettings(str(DATA / "gsm8k_train.jsonl"), (str(DATA / "gsm8k_test.jsonl"),))
    prepared = prepare(settings)
    assert len(prepared.evaluation) == 1319
    # Not one question of the official splits is the same.
    assert prepared.train.available == 7473
    keys = {problem_key(problem) for problem in prepared.evaluation}
    assert not {problem_key(problem) for problem in prepared.train.take(7473)} & keys


@pytest.mark.parametrize(
    ("train", "evaluation", "forms", "words"),
    [
        ("gsm8k_train.jsonl", "gsm8k_test.jsonl", 0, 4),
        # Many problems of the one are variations on problems of the other.
        ("asdiv.jsonl", "svamp.jsonl", 0, 29),
        ("olympiadbench.jsonl", "math500.jsonl", 0, 1),
    ],
)
def test_what_real_sets_share(train, evaluation, forms, words):
    first, second = list(open_set(train)), list(open_set(evaluation))
    assert len(same_form(first, second)) == forms
    assert len(shared_words(first, second)) == words


def test_eapos_sets_measure_together() -> None:
    """AIME 2024, AIME 2025 and the reference problems of AIMO (arXiv:2509.23730, section 3.1)."""
    names = ("aime24.jsonl", "aime25.json", "aimo25.json")
    prepared = prepare(ProblemSettings(eval=tuple(str(DATA / name) for name in names)))
    stems = [problem.id.rpartition(":")[0] for problem in prepared.evaluation]
    assert [stems.count(stem) for stem in ("aime24", "aime25", "aimo25")] == [30, 30, 10]
