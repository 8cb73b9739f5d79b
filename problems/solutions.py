"""Worked solutions of problems, in ``meta["solution"]``.

Generators write them. They are read from a data set if :class:`coterie.problems.columns.Columns`
has ``worked`` set.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from coterie.datatypes import Problem
from coterie.problems.gold import plain_number

Row = Mapping[str, Any]

# GSM8K's calculator notes: 48/2 = <<48/2=24>>24.
_CALCULATOR = re.compile(r"<<[^<>]*>>")
_WHOLE = re.compile(r"(\d+)\.0\b")
_OPERATOR = re.compile(r"\s*([-+*/=])\s*")
# ASDiv's 7+2=9; its other forms (LCM[6,4,16]=48, 47/6=7 r5) are no worked solutions.
_EQUATION = re.compile(r"[\d.()+*/ -]+=[\d. ]+")


def worked_solution(row: Row, gold: str) -> str | None:
    """Return the solution in ``row``: its column ``solution``, GSM8K's steps, ASDiv's formula
    (``7+2=9`` as ``7 + 2 = 9``), or SVAMP's equation with its result; None without one.

    >>> worked_solution({"formula": "(7+2)*3=27", "answer": "27 (apples)"}, "27")
    '(7 + 2) * 3 = 27'
    >>> worked_solution({"Equation": "( 30.0 - 11.0 )", "Answer": 19.0}, "19")
    '30 - 11 = 19'
    """
    for column, read in _READERS.items():
        value = row.get(column)
        text = read(value, gold) if isinstance(value, str) else None
        # Some sets call the bare answer a solution.
        if text and text != gold:
            return text
    return None


def solution_of(problem: Problem) -> str | None:
    """Return the worked solution of ``problem``; for a program, the reference program."""
    if problem.kind == "code":
        return problem.gold
    solution = problem.meta.get("solution")
    return solution.strip() or None if isinstance(solution, str) else None


def _text(value: str, gold: str) -> str | None:
    return value.strip() or None


def _formula(value: str, gold: str) -> str | None:
    return _spaced(value) if _EQUATION.fullmatch(value.strip()) else None


def _equation(value: str, gold: str) -> str | None:
    text = _WHOLE.sub(r"\1", value).strip()
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        text = text[1:-1]
    result = plain_number(gold)
    return (
        _spaced(f"{text} = {gold}") if result and _EQUATION.fullmatch(f"{text} = {gold}") else None
    )


def _steps(value: str, gold: str) -> str | None:
    steps, marked, _ = value.rpartition("####")
    return _CALCULATOR.sub("", steps).strip() or None if marked else None


def _spaced(equation: str) -> str:
    """``7+2=9`` -> ``7 + 2 = 9``."""
    text = _OPERATOR.sub(r" \1 ", equation.strip())
    return re.sub(r"\(\s+", "(", re.sub(r"\s+\)", ")", text))


_READERS: Mapping[str, Callable[[str, str], str | None]] = {
    "solution": _text,
    "formula": _formula,
    "Equation": _equation,
    "answer": _steps,
}

COLUMNS = tuple(_READERS)
"""Columns with solutions."""
