"""Options of multiple choice, in all layouts of published data sets.

Options are a list, an object, labels with texts, one column for each option, or a right answer with
distractors. How the right option is named (letter, label, text, index from 0 or from 1) is decided
for the whole data set: an interpretation must be valid in every row.
"""

import ast
import itertools
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coterie.datatypes import Problem
from coterie.problems.gold import UnusableRowError, number_text, plain_number

Row = Mapping[str, Any]
Reading = str
LETTERS = string.ascii_uppercase
_NUMBERS = [[str(start + place) for place in range(len(LETTERS))] for start in (0, 1)]
"""Labels that count from 0, and from 1."""

COLUMNS = ("options", "choices", "choice", "endings", "answer_choices", "candidates")
_DISTRACTORS = ("incorrect_answers", "distractors", "wrong_answers")
_NAMED_BY = """
answer answerkey answeridx answerindex answerid answerletter answeroption correct correctoption
correctanswer correctanswerid correctanswerindex correctindex correctidx correctchoice
correctletter label gold goldlabel goldindex goldidx target targetidx cop groundtruth
expectedanswer finalanswer
"""
_NAMES = frozenset(_NAMED_BY.split())
"""Columns that name the right option, without case and underscores."""
_INDEX_NAMES = ("label", "labels")
_FAMILY = re.compile(
    r"(?P<stem>option|choice|opt|op|answer|ans|ending|sol|alternative|candidate|)[ _-]?"
    r"(?P<label>[A-Za-z]|\d{1,2})",
    re.IGNORECASE,
)
_DISTRACTOR = re.compile(r"(?:distractor|incorrect[ _]answer|wrong[ _]answer)[ _-]?\d", re.I)
_MARKED = re.compile(r"\(?(?P<label>[A-Za-z]|\d{1,2})(?:\)|\s?[.:)])\s*(?P<text>.*)", re.DOTALL)
_PIECE = re.compile(r"(?:^|[\s,;])\(?([A-Za-z])\s?[.):]\s*", re.DOTALL)
_WITHOUT_COMMAS = re.compile(r"""\[(?:'[^']*'|"[^"]*")(?:\s+(?:'[^']*'|"[^"]*"))+\]""")
_ALONE = re.compile(
    r"(?:(?:option|choice|answer|ans)[\s_-]*)?\(?(?P<label>[A-Za-z]|\d{1,2})\)?[.:)]?",
    re.IGNORECASE,
)

LABEL, TEXT, FROM_0, FROM_1 = "letter", "text", "index from 0", "index from 1"
READINGS = (LABEL, TEXT, FROM_0, FROM_1)
"""Ways to name the right option, in order of preference."""
_Ways = Mapping[tuple[Reading, ...], Sequence[int | None]]
"""Interpretations of a column -> the index of the option in each row."""


@dataclass(frozen=True)
class Options:
    """The options of a row."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    """The data set's labels, or letters."""
    numbers: bool = False
    """Whether the options are numbers in the data set."""
    right: int | None = None
    """Index of the right option, if the options themselves tell it."""


@dataclass(frozen=True)
class Source:
    """The columns of a row's options, and their reader."""

    columns: tuple[str, ...]
    read: Callable[[Row], Options]
    digits: bool = False
    """Whether the columns are numbered."""
    note: str = ""
    """Note for the user if the interpretation is not obvious."""
    permute: bool = False
    """Whether the order reveals the answer."""
    readings: tuple[Reading, ...] | None = None
    """How a published set names the right option; None: detected."""


def find(row: Row) -> Source | None:
    """Find the options of ``row``; None without options."""
    for column, value in row.items():
        if column.casefold() in COLUMNS and _holds_options(value):
            return _of_column(column)
    if isinstance(row.get("mc1_targets"), Mapping):  # TruthfulQA lists the right one first.
        return replace(_of_column("mc1_targets"), permute=True)
    listed = row.get("answers")  # ReClor
    has_index = any(type(row[column]) is int for column in golds(row, ("answers",)))
    if isinstance(listed, list) and len(listed) > 1 and has_index:
        return _of_column("answers")
    return _distractors(row) or _family(row)


def _of_column(column: str) -> Source:
    return Source((column,), lambda row: from_value(column, row.get(column)))


def golds(row: Row, options: Sequence[str]) -> Iterator[str]:
    """Yield the columns that may name the right option."""
    for column in row:
        name = re.sub(r"[ _-]", "", column.casefold())
        if name in _NAMES and column not in options:
            yield column


def from_value(column: str, value: Any) -> Options:
    """Read the options of one column.

    Raises:
        UnusableRowError: the column has no options.
    """
    if isinstance(value, str):
        if _WITHOUT_COMMAS.fullmatch(value.strip()):
            raise UnusableRowError(
                f"{column!r} has no commas between its options, as NumPy writes them; call "
                ".tolist() on each before to_csv, or save Parquet"
            )
        value = _of_text(value) or value
    if isinstance(value, Mapping):
        return _of_object(column, value)
    if not isinstance(value, list):
        fault = "missing" if value is None else f"{type(value).__name__}, not a list"
        raise UnusableRowError(f"{column!r} is {fault} of options")
    if value and all(isinstance(entry, Mapping) for entry in value):
        pairs = [_entry(column, entry) for entry in value]
        return _options([text for _, text in pairs], [label for label, _ in pairs])
    return _options(value)


def choose(
    question: str, options: Options, row: Row, readings: Mapping[str, Sequence[Reading]]
) -> Problem:
    """Return the problem of a row, without an id.

    Args:
        question: the text of the question, without the options.
        options: the options of the row.
        row: values by column.
        readings: column that names the right option -> its interpretations.

    Raises:
        UnusableRowError: the columns name no option, or more than one.
    """
    if not 2 <= len(options.texts) <= len(LETTERS):
        raise UnusableRowError(f"there are {len(options.texts)} options, not 2 to {len(LETTERS)}")
    if options.right is not None:
        return Problem("", question, LETTERS[options.right], "choice", options.texts)
    named: dict[int, str] = {}
    for column, ways in readings.items():
        value = row.get(column)
        for way in ways:
            if value is not None and (index := index_of(way, value, options)) is not None:
                named.setdefault(index, f"{column!r} as {way}")
    if not named:
        value = next((row[column] for column in readings if row.get(column) is not None), None)
        raise UnusableRowError(_fault(value, options))
    if len(named) > 1:
        each = " and ".join(f"{LETTERS[index]} ({how})" for index, how in named.items())
        raise UnusableRowError(
            f"the answer may be {each}; write a letter, or name one column with "
            "--problems.answer-column"
        )
    return Problem("", question, LETTERS[next(iter(named))], "choice", options.texts)


def settle(
    cases: Sequence[tuple[Options, Row]], columns: Sequence[str], *, digits: bool = False
) -> dict[str, tuple[Reading, ...]]:
    """Decide for each column how it names the right option in all rows.

    A column gets several interpretations if nothing decides between them; they must then agree in
    every row, see :func:`choose`.

    Args:
        cases: options and values of each row.
        columns: the columns that may name the right option.
        digits: whether the options' columns are numbered.
    """
    valid = {column: _valid(column, cases) for column in columns}
    valid = {column: ways for column, ways in valid.items() if ways}
    if not valid:
        return dict.fromkeys(columns, (LABEL, TEXT))
    return {
        column: _preferred(column, _agreeing(column, valid), cases, digits=digits)
        for column in valid
    }


def _valid(column: str, cases: Sequence[tuple[Options, Row]]) -> _Ways:
    """The interpretations that find an option in every row with a value; none without values."""
    present = [row.get(column) not in (None, "") for _, row in cases]
    if not any(present):
        return {}
    read = {
        way: [index_of(way, row.get(column), options) for options, row in cases] for way in READINGS
    }
    valid = {(way,): found for way, found in read.items() if _reads(found, present)}
    if valid:
        return valid
    mixed = [a if a is not None else b for a, b in zip(read[LABEL], read[TEXT])]
    return {(LABEL, TEXT): mixed} if _reads(mixed, present) else {}


def _agreeing(column: str, valid: Mapping[str, _Ways]) -> _Ways:
    """The column's interpretations that agree with some interpretation of every other column; all
    if none does."""
    others = [ways for name, ways in valid.items() if name != column]
    agreeing = {
        way: found
        for way, found in valid[column].items()
        if all(any(_agree(found, other) for other in ways.values()) for ways in others)
    }
    return agreeing or valid[column]


def _fault(value: Any, options: Options) -> str:
    """The end of the error message for an answer that names no option."""
    if value is None or value == "" or value == -1:
        return "the answer names none of the options (a split without answers?)"
    if isinstance(value, list):
        parts, ways = value, (LABEL, TEXT)
    else:
        text = str(value).strip("[]() ")
        parts, ways = re.split(r"[\s,;/&]+", text) if " " in text or "," in text else text, (LABEL,)
    several = len(parts) > 1 and all(
        any(index_of(way, part, options) is not None for way in ways) for part in parts
    )
    shown = repr(value)[:80]
    if several:
        return f"the answer {shown} names several options; a question has one right option"
    return f"the answer {shown} names none of the options"


def index_of(reading: Reading, value: Any, options: Options) -> int | None:
    """Return the index of the option that ``value`` names in one interpretation, or None."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        names = ("true", "yes") if value else ("false", "no")
        folded = [text.casefold() for text in options.texts]
        found = [folded.index(name) for name in names if name in folded]
        return found[0] if found and reading == TEXT else None
    if not isinstance(value, (str, int, float)):
        return None
    if reading == LABEL:
        return _labelled(value, options)
    if reading == TEXT:
        return _worded(value, options)
    number = plain_number(str(value)) or ""
    if not number.isdecimal():
        return None
    index = int(number) - 1 if reading == FROM_1 else int(number)
    return index if 0 <= index < len(options.texts) else None


def _labelled(value: str | int | float, options: Options) -> int | None:
    text = str(value).strip()
    folded = [label.casefold() for label in options.labels]
    if text.casefold() in folded:
        return folded.index(text.casefold())
    if alone := _ALONE.fullmatch(text):
        label = alone["label"].casefold()
        if label in folded:
            return folded.index(label)
        # A letter can name the position of options with numbers as labels.
        position = LETTERS.find(label.upper())
        is_position = all(own.isdecimal() for own in folded) and label.isalpha()
        return position if is_position and position < len(options.texts) else None
    marked = _MARKED.fullmatch(text)
    if marked is None or marked["label"].casefold() not in folded:
        return None
    index = folded.index(marked["label"].casefold())
    return index if marked["text"].strip() == options.texts[index] else None


def _worded(value: str | int | float, options: Options) -> int | None:
    if not isinstance(value, str):
        text = number_text(value)
        return options.texts.index(text) if options.numbers and text in options.texts else None
    text = value.strip()
    if options.texts.count(text) == 1:
        return options.texts.index(text)
    folded = [option.casefold() for option in options.texts]
    return folded.index(text.casefold()) if folded.count(text.casefold()) == 1 else None


def _reads(found: Sequence[int | None], present: Sequence[bool]) -> bool:
    """Whether an interpretation finds an option in every row with a value."""
    return all(index is not None for index, is_present in zip(found, present) if is_present)


def _agree(one: Sequence[int | None], other: Sequence[int | None]) -> bool:
    return all(a == b for a, b in zip(one, other) if a is not None and b is not None)


def _preferred(
    column: str,
    ways: _Ways,
    cases: Sequence[tuple[Options, Row]],
    *,
    digits: bool,
) -> tuple[Reading, ...]:
    """The first interpretation, with a later one that differs from it and is as plausible."""
    (first, found), *others = ways.items()
    is_number = any(not isinstance(row.get(column), str) for _, row in cases)
    is_index = column.casefold() in _INDEX_NAMES
    for way, other in others:
        if _agree(found, other):
            continue
        equal = (
            (first == (LABEL,) and way == (TEXT,))
            or (first == (TEXT,) and way == (FROM_0,) and is_number)
            or (first == (LABEL,) and way == (FROM_0,) and digits and is_index)
        )
        if equal:
            return (*first, *way)
    return first


def _options(texts: Sequence[Any], labels: Sequence[str] | None = None) -> Options:
    numbers = bool(texts) and all(
        isinstance(text, (int, float)) and not isinstance(text, bool) for text in texts
    )
    read = [_text(text) for text in texts]
    if not all(read):
        raise UnusableRowError("an option is empty or not text")
    marked = _without_labels(read)
    if marked and (labels is None or [label.casefold() for label in labels] == marked[0]):
        labels, read = labels or [label.upper() for label in marked[0]], marked[1]
    return Options(tuple(read), tuple(labels or LETTERS[: len(read)]), numbers)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return number_text(value)
    return value.strip() if isinstance(value, str) else ""


def _without_labels(texts: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """(labels in lower case, texts) of ``A. neon``, ``B. iron``; None unless all options have
    labels in order."""
    matches = [_MARKED.fullmatch(text) for text in texts]
    if len(texts) < 2 or not all(match and match["text"].strip() for match in matches):
        return None
    labels = [match["label"].casefold() for match in matches if match]
    numbers = labels == _NUMBERS[1][: len(texts)]
    if "".join(labels) != LETTERS[: len(texts)].casefold() and not numbers:
        return None
    if numbers and any(re.match(r"\d+[.:]\d", text) for text in texts):
        return None  # 1.5 and 2.5 are no labels
    return labels, [match["text"].strip() for match in matches if match]


def _holds_options(value: Any) -> bool:
    if isinstance(value, str):
        return _of_text(value) is not None
    return isinstance(value, (list, Mapping)) and bool(value)


def _of_text(text: str) -> list[Any] | Mapping[str, Any] | None:
    """Options in a text: a list in brackets, or ``a ) 38 , b ) 27``."""
    if text.strip()[:1] in ("[", "{"):
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
        return value if isinstance(value, (list, dict)) and value else None
    pieces = _PIECE.split(text.strip())
    labels, texts = pieces[1::2], [piece.strip(" ,;\n") for piece in pieces[2::2]]
    if pieces[0].strip() or len(labels) < 2 or not all(texts):
        return None
    in_order = "".join(labels).upper() == LETTERS[: len(labels)]
    return dict(zip(labels, texts)) if in_order else None


def _of_object(column: str, value: Mapping[str, Any]) -> Options:
    for text, label in (("text", "label"), ("choices", "labels"), ("text", "labels")):
        texts, labels = value.get(text), value.get(label)
        if isinstance(texts, list) and isinstance(labels, list):
            if len(texts) != len(labels):
                raise UnusableRowError(
                    f"{column!r} holds no lists {label!r} and {text!r} of one length"
                )
            if set(labels) <= {0, 1}:
                if labels.count(1) != 1:
                    raise UnusableRowError(f"{column!r} marks {labels.count(1)} options as right")
                return replace(_options(texts), right=labels.index(1))
            return _options(texts, [str(label) for label in labels])
    filled = {str(key): text for key, text in value.items() if text is not None}
    keys = "".join(filled).upper()
    numbers = any(
        list(filled) == [str(start + place) for place in range(len(filled))] for start in (0, 1)
    )
    if not filled or (keys != LETTERS[: len(filled)] and not numbers):
        raise UnusableRowError(
            f"{column!r} is {type(value).__name__}, not an object with 'label' and 'text', nor one "
            "with a text for each letter"
        )
    return _options(list(filled.values()), list(filled))


def _entry(column: str, entry: Mapping[str, Any]) -> tuple[str, Any]:
    """(label, text) of an option that is an object."""
    label = next((entry[key] for key in ("label", "key", "letter", "id") if key in entry), None)
    text = next(
        (entry[key] for key in ("text", "value", "content", "option") if key in entry), None
    )
    if label is None or text is None:
        raise UnusableRowError(f"{column!r} holds an option without 'label' and 'text'")
    return str(label), text


def _distractors(row: Row) -> Source | None:
    """Options from a right answer and distractors, in columns ``distractor1``, ... or a list."""
    right = next((name for name in ("correct_answer", "answer") if name in row), None)
    wrong = tuple(sorted(column for column in row if _DISTRACTOR.fullmatch(column)))
    listed = next((name for name in _DISTRACTORS if isinstance(row.get(name), list)), None)
    if right is None or not (wrong or listed):
        return None

    def read(row: Row) -> Options:
        others = [row.get(name) for name in wrong] if wrong else row.get(str(listed))
        return replace(_options([row.get(right), *(others or ())]), right=0)

    others = wrong or (str(listed),)
    note = f"options from {right} and {_names(others)}"
    return Source((right, *others), read, permute=True, note=note)


def _family(row: Row) -> Source | None:
    """Options in one column each: ``A`` to ``D``, ``option1``, ``opa``, ``ending0``."""
    stems: dict[str, dict[str, str]] = {}
    for column in row:
        match = _FAMILY.fullmatch(column)
        if match and not (match["stem"] == "" and match["label"].isdecimal()):
            stems.setdefault(match["stem"].casefold(), {})[match["label"]] = column
    for stem, columns_of in stems.items():
        for order in (LETTERS, LETTERS.lower(), *_NUMBERS):
            labels = itertools.takewhile(columns_of.__contains__, order)
            family = {label: columns_of[label] for label in labels}
            columns = tuple(family.values())
            # Columns a and b are more likely two numbers than options.
            least = 3 if stem == "" and "a" in family else 2
            if len(columns) >= least and any(golds(row, columns)):
                return _columns_source(family, set(row))
    return None


def _columns_source(family: Mapping[str, str], row: set[str]) -> Source:
    columns = tuple(family.values())

    def read(row: Row) -> Options:
        texts = [row.get(column) for column in columns]
        while texts and (texts[-1] is None or texts[-1] == ""):  # fewer options than columns
            texts.pop()
        return _options(texts, list(family)[: len(texts)])

    readings: tuple[Reading, ...] | None = None
    if {"goal", "sol1", "sol2"} <= row or {"premise", "choice1", "choice2"} <= row:
        readings = (FROM_0,)  # PIQA, COPA
    elif {"answerA", "answerB", "answerC", "label"} <= row:
        readings = (LABEL, FROM_1)  # SocialIQA
    return Source(
        columns,
        read,
        digits=all(label.isdecimal() for label in family),
        note=f"options from columns {_names(columns)}",
        readings=readings,
    )


def _names(columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"{columns[0]} to {columns[-1]}"
