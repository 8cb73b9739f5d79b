"""From a row of a data set to a problem: one pure function for each known set of columns."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from problems.choices import LETTERS, permute_choices, render_choices
from problems.dapo import bare_problem
from problems.gold import (
    UnusableRowError,
    after_hashes,
    kind_of,
    number_with_unit,
    plain_number,
    read_gold,
    read_tolerance,
    without_dollars,
)
from vocabulary import AnswerKind, Problem

Row = Mapping[str, Any]
Reader = Callable[[Row], Problem | None]

META_COLUMNS = (
    "id", "ID", "unique_id", "idx", "Record ID", "level", "type", "Type", "subject", "subfield",
    "Subdomain", "difficulty", "topic", "Year", "year", "answer_type", "unit", "error",
    "solution_type", "choice_type", "category", "data_source", "entry_point", "test",
    "task_id",
)  # fmt: skip

_LONGEST_UNMARKED = 200
_SURROGATE = re.compile("[\ud800-\udfff]")
_DEFINED = re.compile(r"^def\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Format:
    """The columns of a family of data sets and how to read them."""

    name: str
    columns: tuple[str, ...]
    """Columns without which a row cannot be read."""
    read: Reader
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
        if not _encodable(text):
            raise UnusableRowError(f"the {what} holds half a surrogate pair, which is not text")
    if problem.kind == "code" and kind is not None:
        raise UnusableRowError("it asks for a program, so its answer kind cannot be changed")
    if problem.choices:
        if kind is not None:
            raise UnusableRowError("it is multiple choice, so its answer kind cannot be changed")
        if not all(_encodable(choice) for choice in problem.choices):
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

    def read(row: Row) -> Problem:
        gold, kind = read_gold(row[answer])
        return Problem("", _prompt(row, question), gold, kind)

    return Format(f"{question}+{answer}", (question, answer), read)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, bool)) or (isinstance(value, float) and value == value)


def _encodable(text: str) -> bool:
    return text.isascii() or not _SURROGATE.search(text)


def _text(row: Row, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str):
        raise _unfit(row, column, "text")
    return value.strip()


def _entries(row: Row, column: str) -> list[Any]:
    value = row.get(column)
    if not isinstance(value, list):
        raise _unfit(row, column, "a list")
    return value


def _unfit(row: Row, column: str, wanted: str) -> UnusableRowError:
    value = row.get(column)
    found = "missing" if value is None else f"{type(value).__name__}, not {wanted}"
    return UnusableRowError(f"{column!r} is {found}")


def _prompt(row: Row, column: str) -> str:
    """Text, or the last message of the user in a chat."""
    value = row.get(column)
    if not isinstance(value, list):
        return _text(row, column)
    for message in reversed(value):
        if isinstance(message, Mapping) and message.get("role") == "user":
            return _text(message, "content")
    raise UnusableRowError(f"{column!r} is a list without a message of the user")


def _choice(question: str, choices: list[Any], gold: int) -> Problem:
    if not all(isinstance(choice, str) and choice.strip() for choice in choices):
        raise UnusableRowError("an option is empty or not text")
    if not 2 <= len(choices) <= len(LETTERS):
        raise UnusableRowError(f"there are {len(choices)} options, not 2 to {len(LETTERS)}")
    if not 0 <= gold < len(choices):
        raise UnusableRowError("the answer names none of the options (a split without answers?)")
    return Problem(
        "", question, LETTERS[gold], "choice", tuple(choice.strip() for choice in choices)
    )


def _gsm8k(row: Row) -> Problem:
    gold = after_hashes(_text(row, "answer"))
    return Problem("", _text(row, "question"), gold, "number" if plain_number(gold) else "math")


def _svamp(row: Row) -> Problem:
    body = _text(row, "Body")
    stop = "" if body.endswith((".", "?", "!", ",")) else "."
    gold, kind = read_gold(row["Answer"])
    return Problem("", f"{body}{stop} {_text(row, 'Question')}", gold, kind)


def _asdiv(row: Row) -> Problem:
    gold = number_with_unit(_text(row, "answer"))
    question = f"{_text(row, 'body')} {_text(row, 'question')}"
    if gold is None:
        return Problem("", question, _text(row, "answer"), "text")
    return Problem("", question, gold, "number")


def _mmlu(row: Row) -> Problem:
    choices, answer = _entries(row, "choices"), row["answer"]
    if isinstance(answer, str):
        letter = answer.strip()
        options = [choice.strip() if isinstance(choice, str) else choice for choice in choices]
        if letter in options:
            gold = options.index(letter)
        else:
            gold = LETTERS.find(letter.upper()) if len(letter) == 1 else -1
    else:
        gold = answer if isinstance(answer, int) and not isinstance(answer, bool) else -1
    return _choice(_text(row, "question"), choices, gold)


def _commonsenseqa(row: Row) -> Problem:
    if not isinstance(row["choices"], Mapping):
        raise _unfit(row, "choices", "an object with 'label' and 'text'")
    labels, texts = row["choices"].get("label"), row["choices"].get("text")
    if not isinstance(labels, list) or not isinstance(texts, list) or len(labels) != len(texts):
        raise UnusableRowError("'choices' holds no lists 'label' and 'text' of one length")
    answer = row["answerKey"]
    gold = labels.index(answer) if answer in labels else -1
    return _choice(_text(row, "question"), texts, gold)


def _medmcqa(row: Row) -> Problem:
    gold = row["cop"] if isinstance(row["cop"], int) else -1
    return _choice(_text(row, "question"), [row[f"op{letter}"] for letter in "abcd"], gold)


def _gpqa(row: Row) -> Problem:
    options = ["Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3))]
    return _choice(_text(row, "Question"), [_text(row, option) for option in options], 0)


def _final_answer(row: Row) -> Problem:
    gold, kind = read_gold(row["final_answer"])
    gold = without_dollars(gold)
    kind = "list" if kind == "list" or row.get("is_multiple_answer") is True else kind_of(gold)
    context = row.get("context")
    question = _text(row, "question")
    if isinstance(context, str) and context.strip():
        question = f"{context.strip()}\n{question}"
    return Problem("", question, gold, kind, tolerance=read_tolerance(row.get("error")))


def _dapo(row: Row) -> Problem:
    reward = row["reward_model"]
    if not isinstance(reward, Mapping):
        raise UnusableRowError("'reward_model' holds no 'ground_truth'")
    gold, kind = read_gold(reward.get("ground_truth"))
    return Problem("", bare_problem(_prompt(row, "prompt")), gold, kind)


def _humaneval(row: Row) -> Problem:
    # Leading and trailing white space is part of a program.
    prompt, solution = _source(row, "prompt"), _source(row, "canonical_solution")
    return _code(
        row, prompt, solution, {"entry_point": _source(row, "entry_point"), "code_prompt": prompt}
    )


def _mbppplus(row: Row) -> Problem:
    shown = row["test_list"][0] if isinstance(row["test_list"], list) and row["test_list"] else ""
    solution = _source(row, "code")
    called = [name for name in _DEFINED.findall(solution) if f"{name}(" in str(shown)]
    if not called:
        raise UnusableRowError("'test_list' calls no function that 'code' defines")
    # The task in words has no name for its function: an assertion tells it.
    question = f"{_text(row, 'prompt')}\n{shown}"
    return _code(row, question, solution, {"entry_point": called[0], "code_prompt": ""})


def _code(row: Row, question: str, solution: str, meta: dict[str, Any]) -> Problem:
    _source(row, "test")  # kept by its name
    if not str(meta["entry_point"]).isidentifier():
        raise UnusableRowError("'entry_point' is no name of a function")
    return Problem("", question, solution, "code", meta=meta)


def _source(row: Row, column: str) -> str:
    """A program as it stands."""
    _text(row, column)
    return row[column]


def _hle(row: Row) -> Problem | None:
    if row.get("image"):
        return None  # the subset that can be read as text
    return Problem("", _text(row, "question"), _text(row, "answer"), "judged")


def _short(question: str, kind: AnswerKind) -> Reader:
    return lambda row: Problem("", _text(row, question), _text(row, "answer"), kind)


def _solution(question: str) -> Format:
    def read(row: Row) -> Problem:
        solution = _text(row, "solution")
        gold, kind = read_gold(solution)
        if len(gold) > _LONGEST_UNMARKED and gold == solution:
            raise UnusableRowError("'solution' marks no answer with \\boxed{} or ####")
        gold = without_dollars(gold)
        kind = kind if kind == "list" else kind_of(gold)
        return Problem("", bare_problem(_prompt(row, question)), gold, kind)

    return Format(f"{question}+solution", (question, "solution"), read)


def _is(column: str, *types: type) -> Callable[[Row], bool]:
    return lambda row: isinstance(row.get(column), types)


FORMATS: tuple[Format, ...] = (
    Format(
        "gpqa",
        ("Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3))),
        _gpqa,
        permute=True,
    ),
    Format("commonsenseqa", ("question", "choices", "answerKey"), _commonsenseqa,
           fits=_is("choices", Mapping)),
    Format("mmlu", ("question", "choices", "answer"), _mmlu, fits=_is("choices", list)),
    Format("medmcqa", ("question", "opa", "opb", "opc", "opd", "cop"), _medmcqa),
    Format("dapo", ("prompt", "reward_model"), _dapo, deduplicate=True),
    Format("humaneval", ("prompt", "test", "entry_point", "canonical_solution"), _humaneval),
    Format("mbppplus", ("prompt", "code", "test", "test_list"), _mbppplus),
    Format("hle", ("question", "answer", "answer_type", "image"), _hle),
    Format("hotpotqa", ("question", "answer", "supporting_facts"), _short("question", "qa")),
    Format("simpleqa", ("problem", "answer", "metadata"), _short("problem", "judged")),
    Format("svamp", ("Body", "Question", "Answer"), _svamp),
    Format("asdiv", ("body", "question", "answer"), _asdiv),
    Format("gsm8k", ("question", "answer"), _gsm8k,
           fits=lambda row: isinstance(row.get("answer"), str) and "####" in row["answer"]),
    Format("final_answer", ("question", "final_answer"), _final_answer,
           optional=("is_multiple_answer", "context", "error")),
    pair_format("problem", "answer"),
    pair_format("question", "answer"),
    pair_format("prompt", "answer"),
    pair_format("Problem", "Answer"),
    pair_format("Question", "Answer"),
    _solution("problem"),
    _solution("prompt"),
    _solution("question"),
)  # fmt: skip

BY_NAME: Mapping[str, Format] = {form.name: form for form in FORMATS}
