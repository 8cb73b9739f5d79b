"""Known formats of data sets, recognised by the names of their columns."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coterie.datatypes import AnswerKind, Problem
from coterie.problems import readers
from coterie.problems.canonical import canonical
from coterie.problems.gold import UnusableRowError
from coterie.problems.readers import LETTERS, Row, RowReader
from coterie.problems.source import shuffle

META_COLUMNS = (
    "id", "ID", "unique_id", "idx", "Record ID", "level", "type", "Type", "subject", "subfield",
    "Subdomain", "difficulty", "topic", "Year", "year", "answer_type", "unit", "error",
    "solution_type", "choice_type", "category", "data_source", "entry_point", "test",
    "task_id",
)  # fmt: skip

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Format:
    """The columns of a family of data sets and how to read them."""

    name: str
    columns: tuple[str, ...]
    """Columns without which a row cannot be read."""
    read: RowReader
    """Row -> problem without an id whose question lacks its options; None for a row that is left
    out. Raises :class:`UnusableRowError`."""
    fits: Callable[[Row], bool] = lambda row: True
    """Whether the values of a row look right, where the names of columns do not decide."""
    optional: tuple[str, ...] = ()
    """Columns that are used when present."""
    permute: bool = False
    """Whether the options come in an order that would give the answer away."""
    deduplicate: bool = False
    """Whether the set is published with repetitions."""


def read_row(
    form: Format, row: Row, *, id: str, choice_seed: int = 0, kind: AnswerKind | None = None
) -> Problem | None:
    """The finished problem of a row: checked, options in order and written under the question.

    ``kind`` overrides how answers are compared. Raises :class:`UnusableRowError`.
    """
    problem = form.read(row)
    if problem is None:
        return None
    for what, text in (("question", problem.question), ("answer", problem.gold)):
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
            problem = permute_choices(problem, choice_seed)
        problem = replace(problem, question=problem.question + render_choices(problem.choices))
    kept = {name: row[name] for name in META_COLUMNS if _is_scalar(row.get(name))}
    return replace(problem, id=id, kind=kind or problem.kind, meta={**kept, **problem.meta})


def recognise(columns: Iterable[str], row: Row) -> Format | None:
    """The first format of the table whose columns are all there and whose values fit."""
    present = set(columns)
    for form in FORMATS:
        if present.issuperset(form.columns) and form.fits(row):
            return form
    return None


def pair_format(question: str, answer: str) -> Format:
    """Two columns by name; the answer is read by its looks."""
    return Format(f"{question}+{answer}", (question, answer), readers.pair(question, answer))


def render_choices(choices: Sequence[str]) -> str:
    r"""``\nA. first\nB. second``, to be appended to a question."""
    return "".join(f"\n{letter}. {text}" for letter, text in zip(LETTERS, choices))


def permute_choices(problem: Problem, seed: int) -> Problem:
    """``problem`` with its options in a random order that depends on (seed, question) only.

    So GPQA main and GPQA diamond show a shared item the same way. ``problem.question`` does not
    hold the options yet; the seed is kept in ``meta["choice_seed"]``.
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


def _is(column: str, *types: type) -> Callable[[Row], bool]:
    return lambda row: isinstance(row.get(column), types)


FORMATS: tuple[Format, ...] = (
    Format(
        "gpqa",
        ("Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3))),
        readers.gpqa,
        permute=True,
    ),
    Format("commonsenseqa", ("question", "choices", "answerKey"), readers.commonsenseqa,
           fits=_is("choices", Mapping)),
    Format("mmlu", ("question", "choices", "answer"), readers.mmlu, fits=_is("choices", list)),
    Format("medmcqa", ("question", "opa", "opb", "opc", "opd", "cop"), readers.medmcqa),
    Format("dapo", ("prompt", "reward_model"), readers.dapo, deduplicate=True),
    Format("humaneval", ("prompt", "test", "entry_point", "canonical_solution"), readers.humaneval),
    Format("mbppplus", ("prompt", "code", "test", "test_list"), readers.mbppplus),
    Format("hle", ("question", "answer", "answer_type", "image"), readers.hle),
    Format("hotpotqa", ("question", "answer", "supporting_facts"), readers.short("question", "qa")),
    Format("simpleqa", ("problem", "answer", "metadata"), readers.short("problem", "judged")),
    Format("svamp", ("Body", "Question", "Answer"), readers.svamp),
    Format("asdiv", ("body", "question", "answer"), readers.asdiv),
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
)  # fmt: skip

BY_NAME: Mapping[str, Format] = {form.name: form for form in FORMATS}
