"""Decides by a column's name and value whether it is part of the question.

Passages go in front of the question, and columns about the problem (ids, levels, solutions) are
left out. Every other column with text, a list or an object is refused by name, so that no part of a
question is lost silently.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from coterie.datatypes import AnswerKind, UserError
from coterie.problems.canonical import canonical
from coterie.problems.chats import is_chat, messages
from coterie.problems.gold import Answers, UnusableRowError
from coterie.problems.where import Where

Row = Mapping[str, Any]

QUESTIONS = (
    "problem", "question", "prompt", "Problem", "Question", "query", "instruction", "messages",
    "conversations",
)  # fmt: skip
"""Usual columns of a question; the first existing one counts."""

PASSAGES = (
    "system", "system_prompt", "context", "contexts", "passage", "passages", "article",
    "paragraph", "paragraphs", "story", "background", "support", "document", "documents",
    "dialogue", "text", "table", "premise", "hypothesis",
)  # fmt: skip
"""Columns that go in front of a question."""
BEHIND = ("input",)
"""Columns that go after it (Alpaca's input follows the instruction)."""
META_COLUMNS = (
    "id", "ID", "unique_id", "idx", "Record ID", "level", "type", "Type", "subject", "subfield",
    "Subdomain", "difficulty", "topic", "Year", "year", "answer_type", "unit", "error",
    "solution_type", "choice_type", "category", "data_source", "entry_point", "test",
    "task_id",
)  # fmt: skip
"""Columns that are kept with the problem."""
_PLAINLY_ABOUT = (*META_COLUMNS, "solution", "explanation", "rationale", "source", "url")
"""Columns about a problem that no note names."""

_ABOUT_WORDS = """
id ids idx index qid uid uuid guid key hash url urls link links solution solutions explanation
explanations rationale rationales reasoning cot thought thoughts thinking generation
generations completion completions response responses prediction predictions proof answer
answers answerkey gold label labels target targets metadata meta metamap decomposition supporting
correctness finish annotated turk seed original embedding embeddings reward output outputs exp
linear
"""
_ABOUT = frozenset(_ABOUT_WORDS.split())
"""Words in the names of columns about a problem, whatever their values."""
_OBJECTS = frozenset(("info", "extra", "other"))
"""Words in the names of columns about a problem, if their values are objects."""
_ASKED_WORDS = "format image images picture pictures figure figures diagram diagrams"
_ASKED = frozenset(_ASKED_WORDS.split())
"""Words in the names of columns that may belong to a question, whatever the other words."""
_LABELS_WORDS = """
source src origin split subset fold level levels difficulty subject subjects subfield subdomain
topic topics category categories type types tag tags domain domains field discipline grade year
date time created updated author authors license licence language lang score scores rating
votes accuracy rate pass count counts num length len tokens model version dataset config
title titles valid verified verification synthetic ability skill skills task tier exam contest
competition benchmark step steps unit units kind status
"""
_LABELS = frozenset(_LABELS_WORDS.split())
"""Words in the names of columns about a problem, if their values are short labels."""
_SHORT = 120
_BY_CHANCE = 12
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

# Columns that the authors of published sets keep out of the question, by the columns that identify
# the set.
_KEPT_OUT: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("question_stem", "fact1"), ("fact1", "clarity")),  # OpenBookQA
    (("combinedfact", "formatted_question"), ("fact1", "fact2", "combinedfact")),  # QASC
    (("term", "description", "facts"), ("term", "description", "facts", "evidence")),  # StrategyQA
    (("term", "description", "evidence"), ("term", "description", "evidence")),
    (("supporting_facts", "evidences"), ("evidences",)),  # 2WikiMultihopQA
    (("annotations", "used_queries"), ("used_queries",)),  # AmbigQA
    (("question_concept", "choices"), ("question_concept",)),  # CommonsenseQA
    (("ctx", "endings"), ("ctx_a", "ctx_b", "activity_label")),  # HellaSwag
    (("Body", "Question", "Answer"), ("question_concat", "Equation")),  # SVAMP
    (("body", "question", "answer"), ("formula",)),  # ASDiv
)


def kept_out(row: Row) -> set[str]:
    """Return the columns that a published set with these columns keeps out of the question."""
    return {
        column for identifying, out in _KEPT_OUT if all(name in row for name in identifying)
        for column in out
    }  # fmt: skip


def is_about(column: str) -> bool:
    """Whether a column of that name is about the problem, whatever its value."""
    words = _words(column)
    return not _ABOUT.isdisjoint(words) and _ASKED.isdisjoint(words)


@dataclass
class Met:
    """Columns beside question and answer that were met in the rows of a data set."""

    added: set[str] = field(default_factory=set)
    """Passages in the question."""
    left_out: set[str] = field(default_factory=set)
    """Columns with text, or lists of numbers, that are about a problem by their names."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user."""
        left_out = self.left_out.difference(_PLAINLY_ABOUT)
        parts = (("the question includes", self.added), ("the question leaves out", left_out))
        return tuple(f"{verb} {', '.join(sorted(names))}" for verb, names in parts if names)


def flat(row: Row) -> Row:
    """Turn the parts of a question that is an object with a stem (ARC's files) into columns."""
    question = row.get("question")
    if not isinstance(question, Mapping) or "stem" not in question:
        return row
    return {**row, **question, "question": question["stem"]}


@dataclass(frozen=True)
class Columns:
    """The user's settings for the columns of a data set."""

    question: str | None = None
    """Column of the question; None: detected."""
    answer: str | None = None
    """Column of the answer; None: detected."""
    kind: AnswerKind | None = None
    """How answers are compared; None: detected."""
    where: Where | None = None
    """The rows to take; None: all."""
    answers: Answers | None = None
    """The meaning of a list of answers; None: that of the data set."""
    ignore: tuple[str, ...] = ()
    """Columns to leave out."""
    worked: bool = False
    """Whether to read worked solutions (``meta["solution"]``)."""
    choice_seed: int = 0
    """Seed of the order of options, if the data set lists the right one first."""

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

    def kept(self, row: Row) -> Row:
        """Return ``row`` without ignored columns."""
        row = flat(row)
        if not self.ignore:
            return row
        return {column: value for column, value in row.items() if column not in self.ignore}


def with_passages(
    question: str,
    row: Row,
    used: Collection[str],
    *,
    name: str = "question",
    closed: bool = False,
    met: Met | None = None,
) -> str:
    """Add the row's other columns that belong to the question.

    A single passage goes in front unchanged; several get their column's name as a prefix.

    Args:
        question: the text so far.
        row: values by column.
        used: columns that have been read.
        name: the question's column, for error messages.
        closed: whether no further column belongs to the question.
        met: collects the names of columns that are added or left out.

    Raises:
        UnusableRowError: a column may belong to the question and is not understood.
    """
    others = {
        column: value
        for column, value in row.items()
        if column not in used
        and (_says(value) or _counts(column, value))
        and not _is_index(column, value)
    }
    if not others:
        return question
    form, out = canonical(question), kept_out(row)
    front: dict[str, str] = {}
    behind: dict[str, str] = {}
    left_out: set[str] = set()
    for column, value in others.items():
        folded = column.casefold()
        if column in out:
            continue
        if folded in PASSAGES or folded in BEHIND:
            text = passage(column, value)
            if not _stands_in(canonical(text), form):
                (front if folded in PASSAGES else behind)[column] = text
        elif closed:
            continue
        elif _is_about(column, value):
            left_out.add(column)
        elif not _repeats(column, value, form):
            raise UnusableRowError(_refusal(column, value, name))
    if met is not None:
        met.added.update(front, behind)
        met.left_out |= left_out
    named = len(front) > 1
    parts = [f"{column.capitalize()}: {text}" if named else text for column, text in front.items()]
    return "\n\n".join((*parts, question, *behind.values()))


def passage(column: str, value: Any) -> str:
    """Return a passage as text: a text, paragraphs with or without titles, numbers, a table, or a
    chat.

    Raises:
        UnusableRowError: the value is something else.
    """
    text = _passage(column, value)
    if text is None:
        raise UnusableRowError(_refusal(column, value))
    return text.strip()


def _passage(column: str, value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if _is_number(value):
        return str(value)
    if isinstance(value, Mapping):
        if _is_texts(value.get("contexts")):  # PubMedQA
            return "\n".join(value["contexts"])
        titles, sentences = value.get("title"), value.get("sentences")  # HotpotQA
        if isinstance(titles, list) and isinstance(sentences, list):
            return _passage(column, [list(pair) for pair in zip(titles, sentences)])
        texts = (value.get(key) for key in ("paragraph_text", "text", "passage", "content"))
        text = next((text for text in texts if isinstance(text, str)), None)
        title = value.get("title")
        return f"{title}: {text}" if text and isinstance(title, str) else text
    if not isinstance(value, list):
        return None
    if is_chat(value):
        return "\n\n".join(f"{role.capitalize()}: {text}" for role, text in messages(column, value))
    if all(isinstance(e, list) and len(e) == 2 and _is_texts(e[1]) for e in value):
        # [title, sentences], unless it is a table of two columns.
        return "\n".join(f"{title}: {' '.join(s.strip() for s in texts)}" for title, texts in value)
    if all(_is_number(entry) for entry in value):
        return ", ".join(map(str, value))
    if all(isinstance(row, list) and all(_is_scalar(cell) for cell in row) for row in value):
        return "\n".join(" | ".join(str(cell) for cell in row) for row in value)
    parts = [_passage(column, entry) for entry in value]
    return None if None in parts else "\n".join(part for part in parts if part is not None)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _says(value: Any) -> bool:
    """Whether a value has any text, or several numbers."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(_is_number(entry) or _says(entry) for entry in value)
    return value is not None and not isinstance(value, (bool, int, float)) and _is_binary(value)


def _counts(column: str, value: Any) -> bool:
    """Whether a single number, date or truth value may belong to the question: as a passage, or as
    a number with a one-letter name, as in a question about n."""
    if len(column) == 1:
        return _is_number(value)
    is_single = value is not None and not isinstance(value, (str, list, tuple, Mapping))
    return is_single and column.casefold() in (*PASSAGES, *BEHIND)


def _is_binary(value: Any) -> bool:
    """Whether the value is an image or audio, as bytes or as an object of a library."""
    return isinstance(value, bytes) or hasattr(value, "tobytes") or hasattr(value, "getbuffer")


def _is_index(column: str, value: Any) -> bool:
    """Whether the column numbers the rows of a table that pandas wrote."""
    is_unnamed = not column or column.startswith("Unnamed: ")
    return is_unnamed and isinstance(value, str) and value.isdecimal()


def _is_about(column: str, value: Any) -> bool:
    if is_about(column):
        return True
    words = _words(column)
    if not _ASKED.isdisjoint(words):
        return False
    if not _OBJECTS.isdisjoint(words) and isinstance(value, Mapping):
        return True
    return _is_short(value) and not _LABELS.isdisjoint(words)


def _is_short(value: Any) -> bool:
    """Whether a value is a short text, numbers, or a list of these."""
    if isinstance(value, str):
        return len(value) <= _SHORT and "\n" not in value
    if isinstance(value, Mapping):
        return all(entry is None or isinstance(entry, (int, float)) for entry in value.values())
    return _is_number(value) or (isinstance(value, list) and all(map(_is_short, value)))


def _words(column: str) -> set[str]:
    return {word.casefold() for word in _WORDS.findall(column)}


def _repeats(column: str, value: Any, form: str) -> bool:
    """Whether a column repeats the question, possibly within a prompt."""
    if is_chat(value):
        texts = [text for role, text in messages(column, value) if role != "assistant"]
    else:
        texts = [value]
    return all(
        isinstance(text, str)
        and (_stands_in(own := canonical(text), form) or _stands_in(form, own))
        for text in texts
    )


def _stands_in(part: str, whole: str) -> bool:
    """Whether one form contains another; short ones, which may match by chance, must be equal."""
    return part == whole or (len(part) >= _BY_CHANCE and part in whole)


def _refusal(column: str, value: Any, question: str = "question") -> str:
    leave = f"leave it out with --problems.ignore-columns {shlex.quote(column)}"
    if isinstance(value, (str, list)) and _passage(column, value) is not None:
        both = shlex.quote(f"{column}+{question}")
        return (
            f"column {column!r} may belong to the question; put it there with "
            f"--problems.question-column {both}, or {leave}"
        )
    what = f"{type(value).__name__}, not text"
    return f"column {column!r} is {what}, and may belong to the question; {leave}"


def strings(value: Any) -> Iterator[str]:
    """Yield every text inside a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from strings(entry)
