r"""Reads the reference answers of data sets into the form of the checker."""

import ast
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from coterie.datatypes import AnswerKind
from coterie.datatypes.thinking import after_thinking
from coterie.rewards.grading.answers.extract import arguments, candidates, extract, last_box

Answers = Literal["any", "all"]
"""The meaning of a list of answers: any one of them is right, or all are required."""

_BOX = re.compile(r"\\f?box(?:ed)?\s*\{")
_JOINT = re.compile(
    r"[\s$.]*(?:[,;&]|\\(?:text|mathrm)\s?\{\s*(?:and|or|,)\s*\}|\b(?:and|or)\b)"
    r"(?:[\s$,]|\b(?:and|or)\b|\\q?quad|\\[,; ])*(?:[A-Za-z](?:_\{?\w\}?)?\s*=)?[\s$]*"
)
"""What may stand between boxes that are one answer."""
_NAME_BEFORE = re.compile(r"(?<![A-Za-z\\])([A-Za-z](?:_\{?\w\}?)?)\s*=[\s$]*\Z")
_PLAIN_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)", re.ASCII)
_WITH_UNIT = re.compile(r"([-+]?[\d,]*\.?\d+)\s*(?:\([^()]*\)\s*)?", re.ASCII)
_GROUPED = re.compile(
    r"[-+]?\s?[$€£]?\s?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?(?:[\s%][^\d,]*)?", re.ASCII
)
"""One number with thousands separators; ``1,2,3`` and ``(3,4)`` are several."""
_WORDS = {"yes", "no", "true", "false"}
_LONGEST_NUMBER = 100
_TRUTH = {True: ("Yes", "True"), False: ("No", "False")}
# A number with at most one word, such as its unit.
_QUANTITY = re.compile(r"[-+$€£]?\s?\d[\d.,/:]*\s?%?(?:\s?[^\W\d_]+\.?)?")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_WORD = re.compile(r"[^\W\d_]{3,}")


class UnusableRowError(ValueError):
    """Raised for rows that cannot become a problem; the message continues a sentence."""


def number_text(value: int | float | Decimal) -> str:
    """Write a number without exponent, trailing zeros or sign of zero: ``27.0`` is ``"27"``."""
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise UnusableRowError("the answer is not a finite number")
    # The digits of a float as its shortest text has them: int(1e23) is 99999999999999991611392.
    number = Decimal(str(value))
    if isinstance(value, float) and abs(value) >= 2**53 and len(number.as_tuple().digits) > 15:
        # Such as a whole number of a column in which another row has a fraction.
        raise UnusableRowError(
            f"the answer {value!r} may have lost digits as a floating-point number; write the "
            "answers as text"
        )
    return _without_padding(number)


def plain_number(text: str) -> str | None:
    """Normalize a number, ``"025"`` -> ``"25"``, ``"2.50"`` -> ``"2.5"``; None for other text."""
    text = text.strip().replace("−", "-")
    if len(text) > _LONGEST_NUMBER or not _PLAIN_NUMBER.fullmatch(text):
        return None
    return _without_padding(Decimal(text))


def after_hashes(answer: str) -> str:
    """Return GSM8K's answer: the line after the last ``####``; ``1,200`` without its comma."""
    line = answer.rpartition("####")[2].strip().partition("\n")[0].strip()
    gold = line.replace(",", "") if _GROUPED.fullmatch(line) else line
    return plain_number(gold) or gold


def number_with_unit(answer: str) -> str | None:
    """Return the number in ASDiv's ``9 (apples)`` or ``1,200 (miles)``; None for names, times."""
    match = _WITH_UNIT.fullmatch(answer.strip()[:_LONGEST_NUMBER])
    return plain_number(match.group(1).replace(",", "")) if match else None


def read_gold(value: Any) -> tuple[str, AnswerKind]:
    r"""Return the answer and its kind from a value: a number, a string, a text that states it
    (``#### 18``, ``\boxed{18}``, ``The answer is 18.``) behind its thought, or a list of strings
    (several entries are an unordered list)."""
    if isinstance(value, bool):
        return _TRUTH[value][0], "text"
    if isinstance(value, (int, float, Decimal)):
        return number_text(value), "number"
    if isinstance(value, (list, tuple)):
        return _gold_of_list(value)
    if not isinstance(value, str):
        kind = f"{type(value).__name__}, not text or a number"
        raise UnusableRowError(f"the answer is {'missing' if value is None else kind}")
    text = after_thinking(value).strip()
    if "####" in text:
        text = after_hashes(text)
    elif "\\boxed" in text:
        boxed = boxed_answer(text)
        if boxed is None:
            raise UnusableRowError("the answer holds no closed \\boxed{}")
        return plain_number(boxed[0]) or boxed[0], boxed[1]
    elif candidates(text):
        text = extract(text) or text
    return plain_number(text) or text, kind_of(text)


@dataclass(frozen=True)
class Gold:
    """A reference answer."""

    text: str
    kind: AnswerKind
    alternatives: tuple[str, ...] = ()
    """Other answers that are also right."""


def read_answer(value: Any, answers: Answers = "all") -> Gold:
    """Return the reference answer of a cell, see :func:`read_gold`.

    A boolean becomes yes or true, no or false. ``answers`` gives the meaning of a list. If any
    entry is right and one is in words, answers are compared like SQuAD's (kind ``qa``).
    """
    value = listed(value)
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return Gold(_TRUTH[value][0], "text", _TRUTH[value][1:])
    if answers == "all" and _is_matrix(value):
        return _matrix(value)
    if answers == "all" or not isinstance(value, (list, tuple)) or not value:
        gold, kind = read_gold(value)
        is_phrase = answers == "any" and kind == "math" and in_words([gold])
        return Gold(gold, "qa" if is_phrase else kind)
    read = [read_gold(entry) for entry in value]
    first, *others = dict.fromkeys(gold for gold, _ in read if gold.strip()) or [""]
    if in_words([first, *others]):
        return Gold(first, "qa", tuple(others))
    kinds: set[AnswerKind] = {kind for _, kind in read}
    return Gold(first, kinds.pop() if len(kinds) == 1 else "math", tuple(others))


def listed(value: Any) -> Any:
    """Parse a text such as ``["Ada", "A. King"]``, as JSON or Python writes it, as a list; return
    other values unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(('["', "['")):
        return value
    try:
        entries = json.loads(value)
    except (ValueError, RecursionError):
        entries = _of_python(value.strip())
    is_texts = isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)
    return entries if is_texts else value


def _of_python(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    # ['Ada' 'A. King'], as NumPy writes it, is one text to Python.
    return value if repr(value) == text else None


def in_words(entries: Sequence[Any]) -> bool:
    """Whether any entry is a name, date or phrase rather than a formula or quantity."""
    return any(
        isinstance(entry, str)
        and not _QUANTITY.fullmatch(entry.strip())
        and _WORD.search(_COMMAND.sub(" ", entry)) is not None
        and "=" not in entry
        for entry in entries
    )


def kind_of(gold: str) -> AnswerKind:
    """Return ``number`` for plain numbers, ``text`` for yes, no, true and false, else ``math``."""
    if plain_number(gold) is not None:
        return "number"
    return "text" if gold.casefold() in _WORDS else "math"


def read_tolerance(value: Any) -> float:
    """Read OlympiadBench's ``error``, such as ``"1e-1"``; empty: answers must be exact. Of several
    tolerances, the smallest applies to all answers."""
    if value is None or (isinstance(value, str) and value.strip().casefold() in ("", "none")):
        return 0.0
    parts = value.split(",") if isinstance(value, str) else [value]
    try:
        tolerances = [float(part) for part in parts]
    except (TypeError, ValueError, OverflowError):
        tolerances = [math.nan]
    if isinstance(value, bool) or not all(0 <= tolerance < math.inf for tolerance in tolerances):
        raise UnusableRowError(f"'error' is {value!r:.40}, not a tolerance such as 0.1")
    return min(tolerances)


def without_dollars(text: str) -> str:
    r"""Remove ``$`` signs around mathematics; ``\$`` (money) stays."""
    return re.sub(r"(?<!\\)\$", "", text).strip()


def _gold_of_list(values: Sequence[Any]) -> tuple[str, AnswerKind]:
    if not values:
        raise UnusableRowError("the answer is an empty list")
    if len(values) == 1:
        return read_gold(values[0])
    return ", ".join(read_gold(value)[0] for value in values), "list"


def _is_matrix(value: Any) -> bool:
    """Whether a value is several rows of as many numbers or formulas, at least two."""
    if not isinstance(value, (list, tuple)) or len(value) < 2:
        return False
    if not all(isinstance(row, (list, tuple)) and len(row) == len(value[0]) > 1 for row in value):
        return False
    cells = [cell for row in value for cell in row]
    return not in_words(cells) and not any(isinstance(cell, (list, tuple)) for cell in cells)


def _matrix(rows: Sequence[Sequence[Any]]) -> Gold:
    """A matrix in LaTeX, and in the brackets of programs."""
    cells = [[read_gold(cell)[0] for cell in row] for row in rows]
    latex = r" \\ ".join(map(" & ".join, cells))
    lists = ", ".join(f"[{', '.join(row)}]" for row in cells)
    return Gold(rf"\begin{{pmatrix}}{latex}\end{{pmatrix}}", "math", (f"[{lists}]",))


def _without_padding(number: Decimal) -> str:
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def boxed_answer(text: str) -> tuple[str, AnswerKind] | None:
    r"""Return the answer of a solution and its kind, in linear time: its last outermost balanced
    ``\boxed{}`` or ``\fbox{}``, with those that only commas or ``and`` part from it; None if no box
    is closed.

    >>> boxed_answer(r"first \boxed{1}, then \boxed{\frac{1}{2}}.")
    ('\\frac{1}{2}', 'math')
    >>> boxed_answer(r"so $x=\boxed{3}$ or $x=\boxed{-3}$.")
    ('3, -3', 'list')
    >>> boxed_answer(r"$x=\boxed{3}$ and $y=\boxed{4}$")
    ('x=3, y=4', 'math')
    """
    spans = arguments(text, _BOX)
    if len(spans) == 1 and (box := last_box(text)) != text:
        value = box[len(r"\boxed{") : -1]  # with the sign or factor that touches it
        return value, kind_of(value)
    joined: list[tuple[str, str]] = []
    reached = 0
    for start, opened, closed in spans:
        name = _NAME_BEFORE.search(text, max(0, start - 16), start)
        if not joined or start - reached > 64 or not _JOINT.fullmatch(text, reached, start):
            joined = []
        joined.append((name[1] if name else "", text[opened:closed].strip()))
        reached = closed + 1
    if not joined:
        return None
    values = [value for _, value in joined]
    if len({*values}) == 1:
        return values[0], kind_of(values[0])
    names = {name for name, _ in joined}
    if "" not in names and len(names) == len(joined):
        return ", ".join(f"{name}={value}" for name, value in joined), "math"
    return ", ".join(values), "list"
