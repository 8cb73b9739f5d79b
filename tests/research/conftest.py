"""Two small sets of word problems, and commands of studies in the process of the tests."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark, train
from evidence import commands, measures, real_problems

THINGS = ("cows", "pens", "cups", "maps", "keys", "nuts", "eggs", "bags")


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the training and benchmarks of studies in this process, since a new one takes ten seconds
    to import torch and transformers."""
    programs = {"train.py": train.main, "benchmark.py": benchmark.main}
    in_a_process = commands.run

    def run(words: Sequence[str]) -> None:
        program, *arguments = words
        if program in programs:
            assert programs[program](arguments) == 0
        else:
            in_a_process(words)

    monkeypatch.setattr(commands, "run", run)
    monkeypatch.chdir(commands.ROOT)


@pytest.fixture
def word_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Invented items in the columns of both sets, eight of each kind."""
    folder = tmp_path / "sets"
    folder.mkdir()
    asdiv: list[dict[str, Any]] = [
        {"body": "", "question": "How many?", "answer": "505 (cows)", "formula": "500+5=505"},
        {"body": "A farm.", "question": "How many?", "answer": "9 (cows)", "formula": "(1+2)*3=9"},
        {"body": "A yard.", "question": "How many?", "answer": "3 (cows)", "formula": "7/2=3 r1"},
    ]
    svamp: list[dict[str, Any]] = []
    for number, thing in enumerate(THINGS, 3):
        for sign, event in (("-", "sells two"), ("*", "doubles them")):
            gold = number - 2 if sign == "-" else 2 * number
            asdiv.append(
                {
                    "body": f"Ann has {number} {thing} and {event}.",
                    "question": f"How many {thing} has she?",
                    "answer": f"{gold} ({thing})",
                    "formula": f"{number}{sign}2={gold}",
                }
            )
            svamp.append(
                {
                    "Body": f"On the table lie {number} {thing} and one of us {event}",
                    "Question": f"How many {thing} lie there?",
                    "Answer": float(gold),
                    "Equation": f"( {number}.0 {sign} 2.0 )",
                }
            )
    for name, rows in (("asdiv", asdiv), ("svamp", svamp)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setenv("COTERIE_DATA", str(folder))
    for module in (real_problems, measures):
        monkeypatch.setattr(module, "HELD_OUT", 2)
    return folder
