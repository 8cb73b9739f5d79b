"""Row readers: a pure function for each known layout of columns, from a row to a problem.

The problem has no id yet, and its question lacks its options. The result is None for skipped rows;
unreadable rows raise :class:`UnusableRowError`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coterie.datatypes import AnswerKind, Problem
from coterie.datatypes.thinking import after_thinking
from coterie.problems.chats import question_and_response
from coterie.problems.columns import passage, strings
from coterie.problems.gold import (
    Answers,
    Gold,
    UnusableRowError,
    after_hashes,
    kind_of,
    number_with_unit,
    plain_number,
    read_answer,
    read_gold,
    read_tolerance,
    without_dollars,
)
from coterie.problems.options import Options, Reading, choose, settle
from coterie.rewards.grading.answers.extract import extract

Row = Mapping[str, Any]
RowReader = Callable[[Row, Answers | None], Problem | None]

ALIASES = ("answer_aliases", "aliases", "answer_alias")
"""Columns with further answers."""
CHATS = ("messages", "conversations")
"""Columns with chats whose last message is the answer."""
_LONGEST_UNMARKED = 200
_DEFINED = re.compile(r"^def\s+(\w+)", re.MULTILINE)
_CALLED = re.compile(r"(\w+)\(")
_BEFORE = re.compile(
    r"\s*Solve the following math problem step by step\.\s*The last line of your response "
    r"should be of the form\s+Answer:\s*\\?\$Answer\s*\(without quotes\)\s*where\s+\\?\$Answer is "
    r"the answer to the problem\.\s*"
)
_AFTER = re.compile(
    r"Remember to put your answer on its own line after [\"“]Answer:[\"”]\.?\s*", re.IGNORECASE
)


def _text(row: Row, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str):
        raise _unfit(row, column, "text")
    return value.strip()


def _unfit(row: Row, column: str, wanted: str) -> UnusableRowError:
    value = row.get(column)
    fault = "missing" if value is None else f"{type(value).__name__}, not {wanted}"
    return UnusableRowError(f"{column!r} is {fault}")


def _prompt(row: Row, column: str, edit: Callable[[str], str] = str.strip) -> str:
    """A text, or a chat up to the user's last message; ``edit`` is applied to the user's text."""
    value = row.get(column)
    if not isinstance(value, list):
        return edit(_text(row, column))
    question, response = question_and_response(column, value, edit)
    if response is not None and column not in CHATS:
        raise UnusableRowError(
            f"{column!r} ends with a message of the assistant, which is no part of a question"
        )
    return question


def _joined(row: Row, columns: Sequence[str]) -> str:
    return "\n\n".join(
        _prompt(row, column)
        if len(columns) == 1 or isinstance(row.get(column), str)
        else passage(column, row.get(column))
        for column in columns
    )


def gsm8k(row: Row, answers: Answers | None = None) -> Problem:
    """GSM8K (arXiv:2110.14168): the answer follows ``####``."""
    question, answer = _text(row, "question"), _text(row, "answer")
    if question and answer and "####" not in answer:
        raise UnusableRowError("'answer' has no '####' before its result")
    gold = after_hashes(answer)
    return Problem("", question, gold, "number" if plain_number(gold) else "math")


def svamp(row: Row, answers: Answers | None = None) -> Problem:
    """SVAMP (arXiv:2103.07191): body and question are two columns."""
    body = _text(row, "Body")
    stop = "" if body.endswith((".", "?", "!", ",")) else "."
    gold, kind = read_gold(row["Answer"])
    return Problem("", f"{body}{stop} {_text(row, 'Question')}", gold, kind)


def asdiv(row: Row, answers: Answers | None = None) -> Problem:
    """ASDiv (arXiv:2106.15772): a number with its unit, or text."""
    gold = number_with_unit(_text(row, "answer"))
    question = f"{_text(row, 'body')} {_text(row, 'question')}"
    if gold is None:
        return Problem("", question, _text(row, "answer"), "text")
    return Problem("", question, gold, "number")


def choice(
    question: Sequence[str],
    options: Callable[[Row], Options],
    columns: Sequence[str],
    readings: Mapping[str, Sequence[Reading]] | None = None,
    *,
    digits: bool = False,
) -> RowReader:
    """Return a reader of multiple choice.

    Args:
        question: columns of the question.
        options: reader of a row's options.
        columns: columns that name the right option.
        readings: column -> its interpretations; None: detected for each row.
        digits: whether the options' columns are numbered.
    """

    def read(row: Row, answers: Answers | None = None) -> Problem:
        found = options(row)
        how = settle([(found, row)], columns, digits=digits) if readings is None else readings
        return choose(_joined(row, question), found, row, how)

    return read


def gpqa(row: Row, answers: Answers | None = None) -> Problem:
    """GPQA (arXiv:2311.12022): the right option comes first."""
    names = ["Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3))]
    texts = tuple(_text(row, name) for name in names)
    if not all(texts):
        raise UnusableRowError("an option is empty or not text")
    return choose(_text(row, "Question"), Options(texts, tuple("ABCD"), right=0), row, {})


def _is_short(value: Any) -> bool:
    """Whether a cell is an answer rather than a worked solution."""
    return isinstance(value, str | int | float) and 0 < len(str(value).strip()) <= 32


def _bare(value: Any) -> str:
    return without_dollars(str(value)).strip().casefold()


def final_answer(row: Row, answers: Answers | None = None) -> Problem:
    """OlympiadBench (arXiv:2402.14008) and DeepMath (arXiv:2504.11456)."""
    value = row["final_answer"]
    other = row.get("answer")
    if _is_short(other) and _is_short(value) and _bare(other) != _bare(value):
        raise UnusableRowError(
            f"'answer' is {other!r} and 'final_answer' {value!r}; name one with "
            "--problems.answer-column"
        )
    if answers == "any":
        value = [without_dollars(e) if isinstance(e, str) else e for e in _listed(value)]
    read = read_answer(value, answers or "all")
    gold, kind = read.text, read.kind
    if answers != "any":
        gold = without_dollars(gold)
        several = kind == "list" or row.get("is_multiple_answer") is True
        kind = "list" if several else kind_of(gold)
    context = row.get("context")
    question = _text(row, "question")
    if isinstance(context, str) and context.strip():
        question = f"{context.strip()}\n{question}"
    return Problem(
        "",
        question,
        gold,
        kind,
        tolerance=read_tolerance(row.get("error")),
        alternatives=read.alternatives,
    )


def dapo(row: Row, answers: Answers | None = None) -> Problem:
    """DAPO-Math-17k (arXiv:2503.14476): a chat, and the ground truth of a rule-based reward."""
    reward = row["reward_model"]
    if not isinstance(reward, Mapping):
        raise UnusableRowError("'reward_model' holds no 'ground_truth'")
    truth = reward.get("ground_truth")
    if isinstance(truth, Mapping):
        truth = truth.get("target")
    return _problem(_prompt(row, "prompt", bare_problem), read_answer(truth, answers or "any"))


def humaneval(row: Row, answers: Answers | None = None) -> Problem:
    """HumanEval (arXiv:2107.03374) and HumanEval+ (arXiv:2305.01210)."""
    # Leading and trailing white space is part of a program.
    prompt, solution = _source(row, "prompt"), _source(row, "canonical_solution")
    return _code(
        row, prompt, solution, {"entry_point": _source(row, "entry_point"), "code_prompt": prompt}
    )


def mbppplus(row: Row, answers: Answers | None = None) -> Problem:
    """MBPP+ (arXiv:2305.01210): an assertion of the tests names the function."""
    shown = row["test_list"][0] if isinstance(row["test_list"], list) and row["test_list"] else ""
    solution = _source(row, "code")
    calls = {*_CALLED.findall(str(shown))}
    called = [name for name in _DEFINED.findall(solution) if name in calls]
    if not called:
        raise UnusableRowError("'test_list' calls no function that 'code' defines")
    # The task does not name its function, so an assertion is part of the question.
    question = f"{_text(row, 'prompt')}\n{shown}"
    return _code(row, question, solution, {"entry_point": called[0], "code_prompt": ""})


def _code(row: Row, question: str, solution: str, meta: dict[str, Any]) -> Problem:
    _source(row, "test")  # kept by its name
    if not str(meta["entry_point"]).isidentifier():
        raise UnusableRowError("'entry_point' is not the name of a function")
    return Problem("", question, solution, "code", meta=meta)


def _source(row: Row, column: str) -> str:
    """A program, whose white space must stay."""
    _text(row, column)
    return row[column]


def hle(row: Row, answers: Answers | None = None) -> Problem | None:
    """Humanity's Last Exam (arXiv:2501.14249), only items without an image."""
    if row.get("image"):
        return None
    return Problem("", _text(row, "question"), _text(row, "answer"), "judged")


def short(question: str, kind: AnswerKind, answer: str = "answer") -> RowReader:
    """Return a reader of plain columns ``question`` and ``answer`` with answers of ``kind``."""
    return lambda row, answers=None: Problem("", _text(row, question), _text(row, answer), kind)


def pair(question: Sequence[str], answer: str, default: Answers = "all") -> RowReader:
    """Return a reader of named columns, which detects the kind of answer.

    Args:
        question: columns of the question.
        answer: column of the answer.
        default: default meaning of a list of answers.
    """

    def read(row: Row, answers: Answers | None = None) -> Problem:
        value, mode = row[answer], answers or default
        aliases = [e for name in ALIASES for e in _listed(row.get(name)) if name != answer]
        if answer != "answers" and value in (others := _listed(row.get("answers"))):
            aliases += others
        if aliases:
            value, mode = [*_listed(value), *aliases], answers or "any"
        return _problem(_joined(row, question), read_answer(value, mode))

    return read


def any_of(question: str, golds: Callable[[Row], list[Any]], kind: AnswerKind) -> RowReader:
    """Return a reader of a question with a list of answers, any of which is right.

    Args:
        question: column of the question.
        golds: row -> its answers.
        kind: how answers are compared.
    """

    def read(row: Row, answers: Answers | None = None) -> Problem:
        texts = list(dict.fromkeys(filter(None, map(_answer_text, golds(row)))))
        if not texts:
            raise UnusableRowError("it has no answer (a question that cannot be answered?)")
        if answers == "all" and len(texts) > 1:
            return Problem("", _prompt(row, question), ", ".join(texts), "list")
        return _problem(_prompt(row, question), Gold(texts[0], kind, tuple(texts[1:])))

    return read


def _answer_text(value: Any) -> str:
    return read_gold(value)[0].strip() if isinstance(value, (str, int, float)) else ""


def squad(row: Row) -> list[Any]:
    """SQuAD (arXiv:1606.05250): the answers of several annotators."""
    return _listed(row["answers"].get("text"))


def triviaqa(row: Row) -> list[Any]:
    """TriviaQA (arXiv:1705.03551): the answer and its aliases."""
    return [row["answer"].get("value"), *_listed(row["answer"].get("aliases"))]


def ambigqa(row: Row) -> list[Any]:
    """AmbigQA (arXiv:2004.10645): the answers to all interpretations of the question."""
    found: list[Any] = []
    for part in _objects(row["annotations"]):
        pairs = [pair.get("answer") for pair in _objects(part.get("qaPairs"))]
        found += strings([part.get("answer"), pairs])
    return found


def drop(row: Row, answers: Answers | None = None) -> Problem:
    """DROP (arXiv:1903.00161): all spans of an answer are required."""
    spans = row["answers_spans"]
    if not isinstance(spans, Mapping) or not _listed(spans.get("spans")):
        raise UnusableRowError("'answers_spans' holds no 'spans'")
    values = list(dict.fromkeys(_listed(spans["spans"])))
    read = read_answer(values, answers or "all")
    if read.kind == "math":
        read = Gold(read.text, "qa", read.alternatives)
    return _problem(_text(row, "question"), read)


def solution(question: str, column: str = "solution") -> RowReader:
    """Return a reader of a question with a worked solution that marks the answer."""

    def read(row: Row, answers: Answers | None = None) -> Problem:
        return _solved(_prompt(row, question, bare_problem), _text(row, column), repr(column))

    return read


def chat(column: str) -> RowReader:
    """Return a reader of a chat whose last message, by the assistant, states the answer."""

    def read(row: Row, answers: Answers | None = None) -> Problem:
        question, response = question_and_response(column, row[column])
        if response is None:
            raise UnusableRowError(f"{column!r} ends without an answer of the assistant")
        return _solved(question, response, f"the last message of {column!r}")

    return read


def _solved(question: str, solution: str, name: str) -> Problem:
    text = after_thinking(solution).strip()
    gold, kind = read_gold(text)
    if gold == text:
        gold, kind = read_gold(extract(text) or text)
    if len(gold) > _LONGEST_UNMARKED and gold == text:
        raise UnusableRowError(f"{name} marks no answer with \\boxed{{}}, #### or 'Answer:'")
    gold = without_dollars(gold)
    kind = kind if kind == "list" else kind_of(gold)
    return Problem("", question, gold, kind)


def _problem(question: str, gold: Gold) -> Problem:
    return Problem("", question, gold.text, gold.kind, alternatives=gold.alternatives)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list, or a single object (``datasets`` stores some lists so)."""
    return [entry for entry in _listed(value) if isinstance(entry, Mapping)]


def bare_problem(prompt: str) -> str:
    """Remove DAPO's instructions before and after a problem; other text stays unchanged."""
    opening = _BEFORE.match(prompt)
    if opening is None:
        return prompt.strip()
    body = prompt[opening.end() :]
    for closing in _AFTER.finditer(body):
        if closing.end() == len(body):
            body = body[: closing.start()]
            break
    return body.strip()
