"""Column formats of data sets: which columns are question and answer, by their names.

File formats (JSONL, Parquet, CSV, ...) are in :mod:`coterie.problems.files`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coterie.datatypes import Problem
from coterie.problems import options
from coterie.problems import row_readers as readers
from coterie.problems.canonical import canonical
from coterie.problems.columns import META_COLUMNS, QUESTIONS, Columns, Met, with_passages
from coterie.problems.gold import Answers, UnusableRowError, in_words, listed
from coterie.problems.options import FROM_0, FROM_1, LETTERS, Reading, Source
from coterie.problems.row_readers import Row, RowReader
from coterie.problems.source import shuffle

_ANSWERS_OF: Mapping[str | None, Answers] = {
    "qa": "any", "judged": "any", "text": "any", "list": "all",
}  # fmt: skip
"""Meaning of a list of answers for each answer kind that the user can choose."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Format:
    """The columns of a family of data sets, and their reader."""

    name: str
    columns: tuple[str, ...]
    """Required columns."""
    read: RowReader
    """Row -> problem without an id, whose question lacks its options; None for a skipped row.
    Raises :class:`UnusableRowError`."""
    fits: Callable[[Row], bool] = lambda row: True
    """Whether the values of a row fit, if the names of columns are not enough."""
    optional: tuple[str, ...] = ()
    """Columns that are read if they exist."""
    permute: bool = False
    """Whether options are listed in an order that reveals the answer."""
    deduplicate: bool = False
    """Whether the set is published with repetitions."""
    closed: bool = False
    """Whether no further column belongs to the question."""
    settle: Callable[[Sequence[Row]], "Format"] | None = None
    """All rows -> the format with ambiguities decided, such as whether an index counts from 0;
    None: there are none."""
    notes: tuple[str, ...] = ()
    """Notes for the user about interpretations that are not obvious."""

    @property
    def used(self) -> set[str]:
        """The columns that the reader uses."""
        return {*self.columns, *self.optional}


def read_row(
    form: Format,
    row: Row,
    *,
    id: str,
    columns: Columns | None = None,
    met: Met | None = None,
) -> Problem | None:
    """Return the checked problem of a row, with passages before its question and options after it.

    Args:
        form: the format.
        row: values by column.
        id: id of the problem.
        columns: settings of columns; None: none are overridden.
        met: collects the names of columns that are added to the question or left out.

    Raises:
        UnusableRowError: the row cannot become a problem.
    """
    columns = columns or Columns()
    kind = columns.kind
    problem = form.read(row, columns.answers or _ANSWERS_OF.get(kind))
    if problem is None:
        return None
    question = with_passages(
        problem.question, row, form.used, name=form.columns[0], closed=form.closed, met=met
    )
    if problem.question.strip():
        problem = replace(problem, question=question)
    texts = [("question", problem.question), *(("answer", gold) for gold in problem.golds)]
    for what, text in texts:
        if not text.strip():
            raise UnusableRowError(f"the {what} is empty")
        if not _is_encodable(text):
            raise UnusableRowError(f"the {what} holds half a surrogate pair, which is not text")
    if problem.kind == "code" and kind is not None:
        raise UnusableRowError("it asks for a program, so its answer kind cannot be changed")
    if problem.choices:
        if kind is not None:
            raise UnusableRowError("it is multiple choice, so its answer kind cannot be changed")
        if not all(_is_encodable(choice) for choice in problem.choices):
            raise UnusableRowError("an option holds half a surrogate pair, which is not text")
        if form.permute:
            problem = permute_choices(problem, columns.choice_seed)
        problem = replace(problem, question=problem.question + render_choices(problem.choices))
    kept = {name: row[name] for name in META_COLUMNS if _is_scalar(row.get(name))}
    return replace(problem, id=id, kind=kind or problem.kind, meta={**kept, **problem.meta})


def recognise(columns: Iterable[str], row: Row) -> Format | None:
    """Return the first format whose columns exist and whose values fit: published sets first, then
    multiple choice, then question and answer."""
    present = set(columns)
    for form in PUBLISHED:
        if present.issuperset(form.columns) and form.fits(row):
            return form
    question = next((name for name in (*QUESTIONS, *_STEMS) if name in present), None)
    if question and (form := choice_format((question,), row)):
        return form
    for form in PAIRS:
        if present.issuperset(form.columns) and form.fits(row):
            return form
    return None


def pair_format(question: str | Sequence[str], answer: str) -> Format:
    """Return a format of named columns; the kind of answer is detected."""
    columns = (question,) if isinstance(question, str) else tuple(question)

    def settle(rows: Sequence[Row]) -> Format:
        values = (listed(row.get(answer)) for row in rows)
        lists = [value for value in values if isinstance(value, list) and len(value) > 1]
        if not lists:
            return form
        default: Answers = "any" if answer in _ANY or any(map(in_words, lists)) else "all"
        meaning = "any one is right" if default == "any" else "all are wanted"
        note = f"where {answer!r} lists several answers, {meaning} (--problems.answers)"
        return replace(form, read=readers.pair(columns, answer, default), notes=(note,))

    form = Format(
        f"{'+'.join(columns)}+{answer}",
        (*columns, answer),
        readers.pair(columns, answer),
        optional=readers.ALIASES,
        settle=settle,
    )
    return form


def with_columns(form: Format, *, optional: tuple[str, ...]) -> Format:
    """Add columns to ``form`` that do not belong to the question."""
    settle = form.settle
    return replace(
        form,
        optional=(*form.optional, *optional),
        settle=settle and (lambda rows: with_columns(settle(rows), optional=optional)),
    )


def choice_format(question: Sequence[str], row: Row, answer: str | None = None) -> Format | None:
    """Return a multiple-choice format if ``row`` has options and a column with the right one.

    Args:
        question: columns of the question.
        row: the first row.
        answer: column of the right option; None: detected.
    """
    source = options.find(row)
    if source is None:
        return None
    golds = (answer,) if answer else tuple(options.golds(row, source.columns))
    golds = tuple(name for name in golds if name not in question)
    return _choice_format(tuple(question), source, golds) if golds or source.permute else None


def _choice_format(question: tuple[str, ...], source: Source, golds: tuple[str, ...]) -> Format:
    how = None if source.readings is None else dict.fromkeys(golds, source.readings)
    digits = source.digits

    def settle(rows: Sequence[Row]) -> Format:
        if how is not None or source.permute:
            return form
        cases = []
        for row in rows:
            try:
                cases.append((source.read(row), row))
            except UnusableRowError:
                continue  # the reader refuses it later, with its line number
        found = options.settle(cases, golds, digits=digits)
        read = readers.choice(question, source.read, golds, found, digits=digits)
        return replace(form, read=read, notes=(*form.notes, *_index_notes(found, rows)))

    columns = (*question, *source.columns)
    # If several columns name the right option, each may be empty.
    columns = (*columns, golds[0]) if len(golds) == 1 and not source.permute else columns
    form = Format(
        _CHOICES.get(columns, "+".join(columns)),
        tuple(dict.fromkeys(columns)),
        readers.choice(question, source.read, golds, how, digits=digits),
        optional=golds,
        permute=source.permute,
        settle=settle,
        notes=(source.note,) if source.note else (),
    )
    return form


def _index_notes(found: Mapping[str, Sequence[Reading]], rows: Sequence[Row]) -> list[str]:
    """Notes on columns that are read as an index from 1, or as an index from 0 that is text or fits
    from 1 as well."""
    notes = []
    for column, (first, *_) in found.items():
        as_text = any(isinstance(row.get(column), str) for row in rows)
        fits_1 = all(row.get(column) != 0 for row in rows)
        if first == FROM_1 or (first == FROM_0 and (as_text or fits_1)):
            notes.append(f"{column!r} is read as an {first}")
    return notes


def render_choices(choices: Sequence[str]) -> str:
    r"""Return ``\nA. first\nB. second``, to append to a question."""
    return "".join(f"\n{letter}. {text}" for letter, text in zip(LETTERS, choices))


def permute_choices(problem: Problem, seed: int) -> Problem:
    """Put the options into a random order that depends only on seed and question, so that GPQA main
    and GPQA diamond show common items alike.

    ``problem.question`` must not include the options yet. ``meta["choice_seed"]`` gets the seed.
    """
    order = list(range(len(problem.choices)))
    shuffle(order, seed, "choices", canonical(problem.question))
    return replace(
        problem,
        choices=tuple(problem.choices[old] for old in order),
        gold=LETTERS[order.index(LETTERS.index(problem.gold))],
        meta={**problem.meta, "choice_seed": seed},
    )


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, bool)) or (isinstance(value, float) and value == value)


def _is_encodable(text: str) -> bool:
    return text.isascii() or not _SURROGATE.search(text)


def _has(column: str, key: str) -> Callable[[Row], bool]:
    return lambda row: isinstance(value := row.get(column), Mapping) and key in value


_ANY = ("golden_answers", "acceptable_answers", "possible_answers")
"""Columns of which any answer is right, by their names."""
_STEMS = ("question_stem", "ctx", "goal", "sentence", "stem")
"""Columns that are a question only in a row with options."""
_CHOICES: Mapping[tuple[str, ...], str] = {
    ("question", "choices", "answer"): "mmlu",
    ("question", "choices", "answerKey"): "commonsenseqa",
}


def _listed_choices(answer: str) -> Format:
    source = Source(("choices",), lambda row: options.from_value("choices", row.get("choices")))
    return _choice_format(("question",), source, (answer,))


def _medmcqa() -> Format:
    columns = ("opa", "opb", "opc", "opd")
    source = Source(
        columns,
        lambda row: options.from_value("opa to opd", [row[column] for column in columns]),
        readings=(FROM_0,),
    )
    form = _choice_format(("question",), source, ("cop",))
    return replace(form, name="medmcqa", closed=True)


PUBLISHED: tuple[Format, ...] = (
    Format(
        "gpqa",
        ("Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3))),
        readers.gpqa,
        permute=True,
        closed=True,
    ),
    _medmcqa(),
    Format("dapo", ("prompt", "reward_model"), readers.dapo, deduplicate=True),
    Format("humaneval", ("prompt", "test", "entry_point", "canonical_solution"), readers.humaneval,
           closed=True),
    Format("mbppplus", ("prompt", "code", "test", "test_list"), readers.mbppplus, closed=True),
    Format("hle", ("question", "answer", "answer_type", "image"), readers.hle, closed=True),
    Format("hotpotqa", ("question", "answer", "supporting_facts"), readers.short("question", "qa")),
    Format("simpleqa", ("problem", "answer", "metadata"), readers.short("problem", "judged")),
    Format("svamp", ("Body", "Question", "Answer"), readers.svamp),
    Format("asdiv", ("body", "question", "answer"), readers.asdiv),
    Format("squad", ("question", "answers"), readers.any_of("question", readers.squad, "qa"),
           fits=_has("answers", "text")),
    Format("triviaqa", ("question", "answer"), readers.any_of("question", readers.triviaqa, "qa"),
           fits=_has("answer", "value")),
    Format("ambigqa", ("question", "annotations"),
           readers.any_of("question", readers.ambigqa, "qa")),
    Format("drop", ("question", "answers_spans"), readers.drop),
    Format("pubmedqa", ("question", "final_decision"),  # arXiv:1909.06146
           readers.short("question", "text", "final_decision"),
           fits=lambda row: str(row.get("final_decision")).casefold() in ("yes", "no", "maybe")),
)  # fmt: skip
"""Published sets, which their columns identify."""

PAIRS: tuple[Format, ...] = (
    Format("gsm8k", ("question", "answer"), readers.gsm8k,
           fits=lambda row: isinstance(row.get("answer"), str) and "####" in row["answer"]),
    Format("final_answer", ("question", "final_answer"), readers.final_answer,
           optional=("is_multiple_answer", "context", "error")),
    *(pair_format(question, "answer") for question in ("problem", "question", "prompt")),
    *(pair_format(question, "Answer") for question in ("Problem", "Question")),
    *(
        Format(f"{question}+solution", (question, "solution"), readers.solution(question))
        for question in ("problem", "prompt", "question")
    ),
    *(
        pair_format(question, answer)
        for question in QUESTIONS
        for answer in ("answer", "answers", *_ANY, "expected_answer", "ground_truth", "gold")
        if answer != "answer" or question in ("query", "instruction", "messages", "conversations")
    ),
    Format("instruction+output", ("instruction", "output"),
           readers.solution("instruction", "output")),
    *(Format(column, (column,), readers.chat(column)) for column in readers.CHATS),
)  # fmt: skip
"""Formats of a question and an answer, by the names of their columns."""

FORMATS: tuple[Format, ...] = (
    *PUBLISHED,
    _listed_choices("answerKey"),
    _listed_choices("answer"),
    *PAIRS,
)

BY_NAME: Mapping[str, Format] = {form.name: form for form in FORMATS}
