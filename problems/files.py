"""Problems from a file on disk."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.datatypes import AnswerKind, Problem, UserError, user_path
from coterie.problems.formats import Format, pair_format, read_row, recognise
from coterie.problems.gold import UnusableRowError
from coterie.problems.rows import read_rows
from coterie.problems.source import ProblemSet

_QUESTIONS = ("question", "problem", "prompt", "Question", "Problem")
_ANSWERS = ("answer", "final_answer", "solution", "Answer", "gold")


@dataclass(frozen=True)
class Columns:
    """What the user says about the columns of a data set; everything else is recognised."""

    question: str | None = None
    """Column of the question; None recognises it."""
    answer: str | None = None
    """Column of the answer; None recognises it."""
    kind: AnswerKind | None = None
    """How answers are compared; None reads it off the answers."""

    def __post_init__(self) -> None:
        if self.kind not in {None, "math", "number", "list", "text", "qa", "judged"}:
            raise UserError(
                f"answer kind {self.kind!r} cannot be chosen; use math, number, list, text, qa or "
                "judged"
            )

    @property
    def named(self) -> bool:
        """Whether the user named a column."""
        return self.question is not None or self.answer is not None


def load_file(
    path: str | Path,
    columns: Columns | None = None,
    *,
    choice_seed: int = 0,
) -> ProblemSet:
    """Every problem of a JSONL, JSON or Parquet file, in its order; ids are ``stem:position``.

    Raises :class:`UserError` with the file and the line of the first row that cannot be read.
    """
    path = user_path(path)
    return read_problems(str(path), path.stem, read_rows(path), columns, choice_seed=choice_seed)


def read_problems(
    name: str,
    stem: str,
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    columns: Columns | None = None,
    *,
    form: Format | None = None,
    choice_seed: int = 0,
) -> ProblemSet:
    """Problems of placed rows; without ``form`` the first row decides how all are read."""
    columns = columns or Columns()
    problems: list[Problem] = []
    seen: set[str] = set()
    for position, (place, row) in enumerate(rows):
        if form is None:
            form = choose_format(name, row, columns)
        missing = [column for column in form.columns if column not in row]
        if missing:
            raise UserError(f"{name} {place}: no column {missing[0]!r}; found {_names(row)}")
        try:
            problem = read_row(
                form,
                row,
                id=f"{stem}:{position}",
                choice_seed=choice_seed,
                kind=columns.kind,
            )
        except UnusableRowError as error:
            raise UserError(f"{name} {place}: {error}") from None
        except RecursionError:
            raise UserError(f"{name} {place}: a value is nested too deeply") from None
        except (TypeError, AttributeError, OverflowError, KeyError, ValueError) as error:
            # The first row said how all are read; this one holds something else in a column.
            raise UserError(
                f"{name} {place}: a value is not what {form.name} has there "
                f"({type(error).__name__}: {error!s:.80})"
            ) from None
        if problem is None or (form.deduplicate and problem.question in seen):
            continue
        if form.deduplicate:
            seen.add(problem.question)
        problems.append(problem)
    if not problems:
        raise UserError(f"{name} holds no problems; it needs at least one")
    return ProblemSet(name, problems)


def choose_format(name: str, row: Mapping[str, Any], columns: Columns) -> Format:
    """The user's columns, or the known format that fits ``row``."""
    if not columns.named:
        form = recognise(row, row)
        if form is not None:
            return form
        raise UserError(
            f"{name}: cannot tell question and answer among the columns {_names(row)}; name them "
            "with --problems.question-column and --problems.answer-column"
        )
    question = _find_column(name, "question", columns.question, _QUESTIONS, row)
    return pair_format(question, _find_column(name, "answer", columns.answer, _ANSWERS, row))


def _find_column(
    name: str, role: str, wanted: str | None, usual: tuple[str, ...], row: Mapping[str, Any]
) -> str:
    """The column that the user named, or the first usual one that is there."""
    for column in (wanted,) if wanted else usual:
        if column in row:
            return column
    raise UserError(
        f"{name}: no {role} column{f' {wanted!r}' if wanted else ''} among {_names(row)}; "
        f"name one of them with --problems.{role}-column"
    )


def _names(row: Mapping[str, Any]) -> str:
    return ", ".join(list(row)[:20]) or "none"
