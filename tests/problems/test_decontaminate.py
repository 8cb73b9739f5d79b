"""What training shares with evaluation: found by id, by wording and by words, and dropped."""

import json
from pathlib import Path

import pytest

from coterie.datatypes import Problem
from coterie.problems.decontaminate import main
from coterie.problems.hub import HUB_SETS, known_overlap
from coterie.problems.prepare import ProblemSettings, prepare
from coterie.problems.split import same_form, same_id, shared_words

WORDS = [f"w{number}" for number in range(20)]


def problem(question: str, **meta: object) -> Problem:
    return Problem("x", question, "1", meta=meta)


TRAIN = [
    problem("What is 1,000 + 1?", unique_id="test/algebra/1.json"),
    problem("Now: " + " ".join(WORDS[2:15])),  # 13 words in a row
    problem("Now: " + " ".join(WORDS[2:14])),  # 12
    problem("Another question?", unique_id="test/algebra/2.json"),
    problem("A short id?", id="I-1"),
    problem("A number?", id=60),
]
EVAL = [
    problem("what is 1000 + 1"),
    problem(" ".join(WORDS)),
    problem("Reworded beyond recognition?", unique_id="test/algebra/2.json"),
    problem("Of another set?", id="I-1", task_id="test/algebra/1.json"),
    problem("Of another set, too?", id=60),
]


def test_each_criterion_by_hand() -> None:
    # Only the same column counts, and only ids that are no mere number of an item.
    assert same_id(TRAIN, EVAL) == [(3, 2)]
    assert same_form(TRAIN, EVAL) == [(0, 0)]
    # The first has fewer than 13 words: it is one n-gram as a whole.
    assert shared_words(TRAIN, EVAL) == [(0, 0), (1, 1)]
    assert shared_words(TRAIN, EVAL, 12) == [(0, 0), (1, 1), (2, 1)]
    # With the first that it meets, word by word.
    assert shared_words([problem("c b")], [problem("a b"), problem("b c")], 1) == [(0, 1)]
    assert shared_words([problem("b a")], [problem("a b")], 2) == []
    # A short question meets only its equal.
    asked = [problem("what is 7+8"), problem("what is 7 + 8, said Ann")]
    assert shared_words(asked, [problem("What is 7 + 8?")]) == [(0, 0)]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    def save(name: str, problems: list[Problem]) -> str:
        rows = [
            {"question": problem.question, "answer": "1", **problem.meta} for problem in problems
        ]
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
        return str(tmp_path / name)

    return save("train.jsonl", TRAIN), save("eval.jsonl", EVAL)


def test_the_command_says_what_a_run_drops(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files, "--examples", "1"]) == 0
    output = capsys.readouterr().out
    assert "(6 problems) against" in output
    counts = [
        line.split()[-3] for line in output.splitlines() if line.endswith("training problems")
    ]
    assert counts == ["1", "1", "2"]
    assert output.count("train:0: 'What is 1,000 + 1?'") == 2
    assert "drops 1 from training; with --problems.decontaminate it drops 3." in output
    train, evaluation = files
    for strict, left in ((False, 5), (True, 3)):
        settings = ProblemSettings(train=train, eval=(evaluation,), decontaminate=strict)
        assert prepare(settings).train.available == left


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("chains", "chains"), "generated without end"),
        (("no-such-set", "gsm8k"), "unknown problems"),
        (("chains", "chains", "--examples", "-1"), "must not be negative"),
    ],
)
def test_mistakes_are_one_sentence(
    flags: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("train", "evaluation", "known"),
    [
        ("math-8020", "math500", True),
        ("math-8020?order=given", "math", True),
        ("aime-1983-2025", "aime25", True),
        ("aime-1983-2024", "aime24?revision=x", True),
        ("gpqa-main", "gpqa-diamond", True),
        ("dapo-17k", "dapo-17k-processed", True),
        ("math", "math500", False),
        ("math-8020", "math-8020", False),
        ("gsm8k", "math500", False),
    ],
)
def test_overlaps_by_making(train: str, evaluation: str, known: bool) -> None:
    assert {train.partition("?")[0], evaluation.partition("?")[0]} <= set(HUB_SETS)
    assert bool(known_overlap(train, evaluation)) == known


def test_sets_that_are_known_to_overlap_are_always_decontaminated(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = "one is made of the other"
    for module in ("prepare", "decontaminate"):
        monkeypatch.setattr(f"coterie.problems.{module}.known_overlap", lambda *names: sentence)
    train, evaluation = files
    assert prepare(ProblemSettings(train=train, eval=(evaluation,))).train.available == 3
    assert main(files) == 0
    assert f"known: {sentence}\nA run with both drops 3 from training." in capsys.readouterr().out
