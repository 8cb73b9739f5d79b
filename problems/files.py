"""Problems from files: :func:`read_rows` reads every file format, by the ending of the name.

To add a file format, add its ending to ``SUFFIXES`` and a reader of its rows to :func:`read_rows`.
Which columns are question and answer is decided in :mod:`coterie.problems.column_formats`.
"""

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coterie.datatypes import Problem, UserError, join_or, user_path
from coterie.problems import options
from coterie.problems.column_formats import (
    Format,
    choice_format,
    pair_format,
    read_row,
    recognise,
    with_columns,
)
from coterie.problems.columns import QUESTIONS, Columns, Met
from coterie.problems.gold import UnusableRowError
from coterie.problems.solutions import worked_solution
from coterie.problems.source import ProblemSet
from coterie.problems.where import column_names

LINES = (".jsonl", ".ndjson")
DOCUMENT = ".json"
PARQUET = ".parquet"
TABLES = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*LINES, DOCUMENT, PARQUET, *TABLES)
_MMLU = ("question", "A", "B", "C", "D", "answer")
"""Columns of MMLU's tables, which have no header."""
_QUOTED = re.compile(r'(?:^|(?<=\t))"(?:[^"]|"")*+"(?=\t|\r?$)', re.MULTILINE)
"""A cell between quotation marks, in a table with tabs."""
_OPEN_QUOTE = re.compile(r'(?:^|\t)"', re.MULTILINE)


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, row) for each row of JSONL, JSON (a list of objects, or an object with one such
    list), Parquet, CSV or TSV; the place is ``line 3``, ``entry 3`` or ``row 3``, from 1.

    Raises:
        UserError: names file and place.
    """
    if path.is_dir():
        raise UserError(
            f"{path} is a folder; name a file that ends in {join_or(SUFFIXES)}, or hub:{path} for "
            "a folder in the hub's layout"
        )
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is a pipe or a device; write its lines to a file first")
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path}: unknown kind of file; use one that ends in {join_or(SUFFIXES)}")
    try:
        if path.suffix.lower() == PARQUET:
            yield from _parquet_rows(path)
            return
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no problem file {path}; check the path") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    text = _decode(path, content)
    if not text.strip():
        raise UserError(f"{path} holds no problems; it needs at least one")
    if path.suffix.lower() in TABLES:
        yield from _table_rows(path, text)
    elif path.suffix.lower() in LINES or _is_lines(text):
        yield from _line_rows(path, text)
    else:
        yield from _document_rows(path, text)


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path} line {line}: not UTF-8 text (byte 0x{content[error.start]:02x}); save the "
            "file as UTF-8"
        ) from None


def _is_lines(text: str) -> bool:
    """Whether a ``.json`` file has an object on each line, as many do."""
    lines = text.lstrip().split("\n", 2)
    return (
        lines[0].startswith("{")
        and lines[0].rstrip().endswith("}")
        and any(line.strip() for line in lines[1:])
    )


def _line_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"line {number}"
            yield place, _object(path, place, _parse(path, place, line))


def _table_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a table with a header, or of MMLU's tables without one."""
    delimiter = TABLES[path.suffix.lower()]
    # In a table with tabs, a mark may just begin a text: "Hi" said Ann.
    is_plain = delimiter == "\t" and _OPEN_QUOTE.search(_QUOTED.sub("", text))
    quoting = csv.QUOTE_NONE if is_plain else csv.QUOTE_MINIMAL
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting)
    names: list[str] = []
    try:
        for cells in lines:
            if not cells:
                continue
            if not names and _is_mmlu(cells):
                names = list(_MMLU)
            elif not names:
                names = [cell.strip() for cell in cells]
                if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
                    raise UserError(
                        f"{path} has no commas between its columns; save it with commas, or with "
                        "tabs as a .tsv file"
                    )
                _refuse_twice(path, names)
                continue
            place = f"line {lines.line_num}"
            if len(cells) != len(names):
                raise UserError(
                    f"{path} {place}: {len(cells)} cells, but {len(names)} columns are named in "
                    "the first line"
                )
            yield place, dict(zip(names, cells))
    except csv.Error as error:
        raise UserError(f"{path} line {lines.line_num}: not a readable table ({error})") from None


def _is_mmlu(cells: Sequence[str]) -> bool:
    return len(cells) == len(_MMLU) and cells[-1].strip() in ("A", "B", "C", "D")


def _document_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    document = _parse(path, None, text)
    if isinstance(document, dict):
        lists = {
            name: value
            for name, value in document.items()
            if isinstance(value, list) and value and isinstance(value[0], dict)
        }
        if len(lists) != 1:
            raise UserError(
                f"{path} is a JSON object with {len(lists)} lists of problems; it must be a list, "
                "or an object that holds exactly one"
            )
        (document,) = lists.values()
    if not isinstance(document, list):
        raise UserError(f"{path} must hold a list of objects, one a problem")
    for number, row in enumerate(document, start=1):
        yield f"entry {number}", _object(path, f"entry {number}", row)


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            _refuse_twice(path, file.schema_arrow.names)
            written = json.loads((file.schema_arrow.metadata or {}).get(b"huggingface", "{}"))
            names = label_names(written.get("info", {}).get("features", {}))
            for batch in file.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", with_labels(row, names)
    except (
        pyarrow.ArrowInvalid,
        pyarrow.ArrowNotImplementedError,
        ValueError,
        OverflowError,
    ) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(
            f"{path} is not a readable Parquet file after row {number}: {reason}"
        ) from None


def label_names(features: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Column -> the names of its labels, from features that datasets writes as JSON."""
    return {
        column: kind["names"]
        for column, kind in features.items()
        if isinstance(kind, Mapping) and kind.get("_type") == "ClassLabel"
    }


def with_labels(row: dict[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return ``row`` with the names of labels in place of their numbers, None for -1; a row with
    options, which its label counts, stays as it is."""
    if not names or options.find(row):
        return row
    numbers = {column: row[column] for column in names if isinstance(row.get(column), int)}
    return row | {
        column: names[column][number] if 0 <= number < len(names[column]) else None
        for column, number in numbers.items()
    }


def _parse(path: Path, place: str | None, text: str) -> Any:
    at = f"{path} {place}" if place else str(path)
    try:
        # Some tools write missing cells as NaN; a missing answer is refused later.
        return json.loads(text, parse_constant=lambda constant: None, object_pairs_hook=_once_each)
    except json.JSONDecodeError as error:
        where = place or f"line {error.lineno}"
        raise UserError(
            f"{path} {where}: not valid JSON ({error.msg} at column {error.colno})"
        ) from None
    except RecursionError:
        raise UserError(f"{at}: JSON nested too deeply") from None
    except ValueError as error:
        raise UserError(f"{at}: {error}") from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = _twice(name for name, _ in pairs)
        raise ValueError(f"{twice!r} is given twice in one object; rename or delete one")
    return row


def _twice(names: Iterable[str]) -> str:
    """The first name that comes more than once, but for empty ones; empty if none does."""
    return next((name for name, count in Counter(names).items() if name and count > 1), "")


def _refuse_twice(path: Path, names: Sequence[str]) -> None:
    """Refuse two columns of one name, of which only the last would be read."""
    if twice := _twice(names):
        raise UserError(f"{path} has two columns {twice!r}; rename or delete one")


def _object(path: Path, place: str, row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise UserError(
            f"{path} {place}: expected an object with columns, found {type(row).__name__}"
        )
    return row


_ANSWERS = ("answer", "final_answer", "solution", "Answer", "gold")
_Row = tuple[int, str, Mapping[str, Any]]
"""Position and place in the data set, and the values by column."""


def load_file(
    path: str | Path,
    columns: Columns | None = None,
) -> ProblemSet:
    """Read all problems of a file in order; ids are ``stem:position``.

    Args:
        path: the file.
        columns: settings of columns; None: all are detected.

    Raises:
        UserError: names the file and the line of the first unreadable row.
    """
    path = user_path(path)
    return read_problems(str(path), path.stem, read_rows(path), columns)


def read_problems(
    name: str,
    stem: str,
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    columns: Columns | None = None,
    *,
    form: Format | None = None,
) -> ProblemSet:
    """Read problems from rows.

    Args:
        name: name of the data set, for error messages.
        stem: prefix of ids.
        rows: (place, row); the place is for error messages.
        columns: settings of columns.
        form: the format of rows; None: the first row decides.

    Raises:
        UserError: a row cannot be read, or no problem is left.
    """
    columns = columns or Columns()
    values: dict[str, None] = {}
    beside = Met()
    kept: Iterable[_Row] = _kept(name, rows, columns, values)
    if form is None and (first := next(iter(kept), None)):
        form = choose_format(name, first[2], columns)
        kept = itertools.chain([first], kept)
        if form.settle is not None:
            # Only all rows together decide what an answer means.
            kept = list(kept)
            form = form.settle([columns.kept(row) for _, _, row in kept])
    problems: list[Problem] = []
    seen: set[str] = set()
    for position, place, row in kept:
        assert form is not None
        problem = _read(f"{name} {place}", row, form, columns, f"{stem}:{position}", beside)
        if problem is None or (form.deduplicate and problem.question in seen):
            continue
        seen.add(problem.question)
        problems.append(problem)
    if not problems:
        if columns.where and values:
            raise columns.where.refusal(name, values)
        raise UserError(f"{name} holds no problems; it needs at least one")
    return ProblemSet(name, problems, (*(form.notes if form else ()), *beside.notes))


def _read(
    place: str, whole: Mapping[str, Any], form: Format, columns: Columns, id: str, met: Met
) -> Problem | None:
    """The problem of a row, with its worked solution; None for a skipped row."""
    row = columns.kept(whole)
    missing = [column for column in form.columns if column not in row]
    if missing:
        raise UserError(f"{place}: no column {missing[0]!r}; found {column_names(row)}")
    try:
        problem = read_row(form, row, id=id, columns=columns, met=met)
    except UnusableRowError as error:
        raise UserError(f"{place}: {error}") from None
    except RecursionError:
        raise UserError(f"{place}: a value is nested too deeply") from None
    except (TypeError, AttributeError, OverflowError, KeyError, ValueError) as error:
        # The format comes from the first row; this row has a column of another type.
        raise UserError(
            f"{place}: a value is not what {form.name} has there "
            f"({type(error).__name__}: {error!s:.80})"
        ) from None
    if problem and columns.worked and (solution := worked_solution(whole, problem.gold)):
        return replace(problem, meta={**problem.meta, "solution": solution})
    return problem


def _kept(
    name: str,
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    columns: Columns,
    values: dict[str, None],
) -> Iterator[_Row]:
    """The rows that ``where`` takes; ``values`` collects what its column holds."""
    for position, (place, row) in enumerate(rows):
        if position == 0 and (unknown := [c for c in columns.ignore if c not in row]):
            raise UserError(
                f"{name}: no column {unknown[0]!r} to leave out among {column_names(row)}; "
                "name another with --problems.ignore-columns, or for one set alone: "
                "SOURCE?ignore=COLUMN"
            )
        if columns.where and not columns.where.keeps(f"{name} {place}", row, values):
            continue
        yield position, place, row


def choose_format(name: str, whole: Mapping[str, Any], columns: Columns) -> Format:
    """Return the format of the user's columns, or the known format that fits the row."""
    row = columns.kept(whole)
    if not columns.named:
        form = recognise(row, row)
        if form is not None:
            return form
        raise UserError(
            f"{name}: cannot tell question and answer among the columns {column_names(row)}; "
            "name them with --problems.question-column and --problems.answer-column (if no reward "
            "reads an answer, add a column 'answer' with any text)"
        )
    named = columns.question  # one column, or several joined by +
    wanted = [named] if named is None or named in row else named.split("+")
    question = tuple(_find_column(name, "question", one, QUESTIONS, row) for one in wanted)
    form = choice_format(question, row, columns.answer)
    if form is None:
        answer = _find_column(name, "answer", columns.answer, _ANSWERS, row)
        form = pair_format(question, answer)
    elif columns.answer:
        _find_column(name, "answer", columns.answer, _ANSWERS, row)
    if columns.question:
        # The user's column replaces these.
        replaced = tuple(column for column in QUESTIONS if column in row)
        form = with_columns(form, optional=replaced)
    return form


def _find_column(
    name: str, role: str, wanted: str | None, usual: tuple[str, ...], row: Mapping[str, Any]
) -> str:
    """The user's column, or the first usual column that exists."""
    for column in (wanted,) if wanted else usual:
        if column in row:
            return column
    raise UserError(
        f"{name}: no {role} column{f' {wanted!r}' if wanted else ''} among {column_names(row)}; "
        f"name one of them with --problems.{role}-column, or for one set alone: "
        f"SOURCE?{role}=COLUMN"
    )
