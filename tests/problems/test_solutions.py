"""Worked solutions of rows, and rows by the value of a column."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie.datatypes import Problem, UserError
from coterie.problems.columns import Columns
from coterie.problems.opening import open_source
from coterie.problems.solutions import solution_of, worked_solution


@pytest.mark.parametrize(
    ("row", "gold", "solution"),
    [
        ({"solution": " Half of 4 is 2. "}, "2", "Half of 4 is 2."),
        # Some sets call the bare answer a solution.
        ({"solution": "34"}, "34", None),
        ({"formula": "7+2=9", "answer": "9 (apples)"}, "9", "7 + 2 = 9"),
        ({"formula": "(7+2)*3=27"}, "27", "(7 + 2) * 3 = 27"),
        ({"formula": "4*8+7=39 "}, "39", "4 * 8 + 7 = 39"),
        # They say too little of how the answer is found.
        ({"formula": "LCM[6,4,16]=48"}, "48", None),
        ({"formula": "47/6=7 r5"}, "5", None),
        ({"Equation": "( 290.0 / 2.0 )", "Answer": 145.0}, "145", "290 / 2 = 145"),
        ({"Equation": "( ( 3.0 + 2.5 ) * 2.0 )"}, "11", "((3 + 2.5) * 2) = 11"),
        ({"answer": "48/2 = <<48/2=24>>24 clips.\n#### 24"}, "24", "48/2 = 24 clips."),
        ({"answer": "24"}, "24", None),
        ({"solution": None, "answer": 3}, "3", None),
    ],
)
def test_a_row_tells_how_its_answer_is_found(
    row: dict[str, Any], gold: str, solution: str | None
) -> None:
    assert worked_solution(row, gold) == solution


ROWS = [
    {"question": "1 + 1?", "answer": "2", "solution": "1 + 1 = 2", "kind": "sum"},
    {"question": "2 * 3?", "answer": "6", "solution": "2 * 3 = 6", "kind": "product"},
    {"question": "9 - 2?", "answer": "7", "solution": "9 - 2 = 7", "kind": "difference"},
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(path)


def test_problems_carry_solutions_where_they_are_asked_for(file: str) -> None:
    plain, worked = open_source(file), open_source(file, Columns(worked=True))
    assert solution_of(plain[0]) is None
    assert solution_of(worked[0]) == "1 + 1 = 2"
    # Held-out problems are known by what is asked, not by how it is solved.
    assert plain.fingerprint == worked.fingerprint


def test_of_a_program_the_program_is_the_solution() -> None:
    assert solution_of(Problem("p", "?", "def f(): ...", "code")) == "def f(): ..."


def test_rows_by_the_value_of_a_column(file: str) -> None:
    source = open_source(f"{file}?where=kind:sum|difference")
    assert [source[place].question for place in range(source.size or 0)] == ["1 + 1?", "9 - 2?"]
    # The same problem has the same id, whatever else is taken.
    assert source[1].id == open_source(file)[2].id


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("kind:quotient", "no row has kind quotient; there are sum, product, difference"),
        ("sort:sum", "where names the column 'sort'; found question, answer, solution, kind"),
        ("kind", "write where=COLUMN:VALUE"),
        ("kind:|", "write where=COLUMN:VALUE"),
    ],
)
def test_a_choice_of_rows_that_cannot_be(file: str, where: str, said: str) -> None:
    with pytest.raises(UserError, match=r"where|no row") as error:
        open_source(f"{file}?where={where}")
    assert said in str(error.value)
