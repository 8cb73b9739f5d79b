"""Word problems of one step, of ASDiv and SVAMP, as files for the runs with real models.

The two sets are read from the folder that COTERIE_DATA names; the files are written beside the
runs. No item is in the repository.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from coterie.datatypes import Problem, UserError, derive_seed
from coterie.problems.canonical import problem_key
from coterie.problems.columns import Columns
from coterie.problems.opening import open_source
from coterie.problems.solutions import solution_of
from coterie.problems.source import shuffle
from coterie.problems.split import shared_words

SETS = ("asdiv", "svamp")
FAMILIES = {"+": "plus", "-": "plus", "*": "times", "/": "times"}
KINDS = tuple(dict.fromkeys(FAMILIES.values()))
HELD_OUT = 48
"""Of each set and kind, in the order of :data:`PARTS`."""
PARTS = tuple((name, kind) for kind in KINDS for name in SETS)
LARGEST = 100
"""Largest number in a question's equation."""
TRAINING, EVALUATION = "training.jsonl", "held-out.jsonl"
STATED = "stated.jsonl"
"""The training problems with worked solutions that end in a box and a confidence."""
READING = "reading.jsonl"
"""The training problems, and each of them once more behind a hint that its solution follows."""
_ONE_STEP = re.compile(r"(\d+) ([-+*/]) (\d+) = (\d+)")

Row = Mapping[str, str]


def write_problems(folder: Path) -> None:
    """Write the files into ``folder``, unless they are there.

    Raises:
        UserError: COTERIE_DATA names no folder with both sets.
    """
    if all((folder / name).is_file() for name in (TRAINING, STATED, READING, EVALUATION)):
        return
    data = Path(os.environ.get("COTERIE_DATA", ""))
    if not all((data / f"{name}.jsonl").is_file() for name in SETS):
        wanted = " and ".join(f"{name}.jsonl" for name in SETS)
        raise UserError(f"COTERIE_DATA must name the folder with {wanted}")
    of_part = _read(data)
    held_out = [row for part in PARTS for row in of_part[part][:HELD_OUT]]
    left = {part: _apart(of_part[part][HELD_OUT:], held_out) for part in PARTS}
    # As many of either kind in each set.
    most = {name: min(len(left[name, kind]) for kind in KINDS) for name in SETS}
    training = [row for part in PARTS for row in left[part][: most[part[0]]]]
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        TRAINING: training,
        STATED: [{**row, "solution": _stated(row)} for row in training],
        READING: [version for row in training for version in (row, hinted(row))],
        EVALUATION: held_out,
    }
    for name, rows in files.items():
        draft = folder / f"{name}.{os.getpid()}"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        draft.replace(folder / name)


def kind_of(problem: Problem) -> str | None:
    """``plus`` or ``times`` where one step with small numbers solves the problem, else None."""
    step = _ONE_STEP.fullmatch(solution_of(problem) or "")
    if not step or problem.kind != "number" or step[4] != problem.gold:
        return None
    return FAMILIES[step[2]] if max(int(step[1]), int(step[3])) <= LARGEST else None


def _read(data: Path) -> Mapping[tuple[str, str], list[Row]]:
    """Set and kind -> its problems, shuffled, each of them once."""
    known: set[str] = set()
    of_part: dict[tuple[str, str], list[Row]] = {part: [] for part in PARTS}
    for name in SETS:
        source = open_source(str(data / f"{name}.jsonl"), Columns(worked=True))
        for place in range(source.size or 0):
            problem = source[place]
            kind, key = kind_of(problem), problem_key(problem)
            if kind is not None and key not in known:
                known.add(key)
                of_part[name, kind].append(_row(problem, kind))
    for (name, kind), rows in of_part.items():
        order = list(range(len(rows)))
        shuffle(order, 0, "real models", name, kind)
        rows[:] = [rows[place] for place in order]
    return of_part


def _row(problem: Problem, kind: str) -> Row:
    return {
        "question": problem.question,
        "answer": problem.gold,
        "solution": solution_of(problem) or "",
        "category": kind,
    }


def _apart(rows: list[Row], held_out: list[Row]) -> list[Row]:
    """The rows that share no 13 words in a row with a held-out one."""

    def problems(of: list[Row]) -> list[Problem]:
        return [Problem(str(place), row["question"], "") for place, row in enumerate(of)]

    shared = {place for place, _ in shared_words(problems(rows), problems(held_out))}
    return [row for place, row in enumerate(rows) if place not in shared]


def hinted(row: Row) -> Row:
    """The question behind a hint: its two numbers under any operation that fits, which is seldom
    the right one. So what follows can be known from the hint alone, as in the tiny team's warm-up;
    which questions want which operation is not told."""
    first, second = (int(number) for number in re.findall(r"\d+", row["solution"])[:2])
    results = {"+": first + second, "*": first * second}
    if first >= second:
        results["-"] = first - second
    if second and not first % second:
        results["/"] = first // second
    operations = sorted(results)
    operation = operations[derive_seed("hint", row["question"]) % len(operations)]
    hint = f"{first} {operation} {second} = {results[operation]}"
    question = f"{row['question']}\n\nHint:\n{hint}"
    return {**row, "question": question, "answer": str(results[operation]), "solution": hint}


def _stated(row: Row) -> str:
    # Its confidence says nothing, so that training finds every value tried.
    tenths = 1 + derive_seed("confidence", row["question"]) % 9
    return f"{row['solution']}\n\\boxed{{{row['answer']}}} \\confidence{{0.{tenths}}}"
