"""One pure function for each known set of columns: from a row of a data set to a problem.

A problem has no id yet, and its question lacks its options. None stands for a row that is left out;
a row that cannot be read raises :class:`UnusableRowError`.
"""

import re
import string
from collections.abc import Callable, Mapping
from typing import Any

from coterie.datatypes import AnswerKind, Problem
from coterie.problems.gold import (
    UnusableRowError,
    after_hashes,
    kind_of,
    number_with_unit,
    plain_number,
    read_gold,
    read_tolerance,
    without_dollars,
)

Row = Mapping[str, Any]
RowReader = Callable[[Row], Problem | None]

LETTERS = string.ascii_uppercase
_LONGEST_UNMARKED = 200
_DEFINED = re.compile(r"^def\s+(\w+)", re.MULTILINE)
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


def _entries(row: Row, column: str) -> list[Any]:
    value = row.get(column)
    if not isinstance(value, list):
        raise _unfit(row, column, "a list")
    return value


def _unfit(row: Row, column: str, wanted: str) -> UnusableRowError:
    value = row.get(column)
    fault = "missing" if value is None else f"{type(value).__name__}, not {wanted}"
    return UnusableRowError(f"{column!r} is {fault}")


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


def gsm8k(row: Row) -> Problem:
    """GSM8K (arXiv:2110.14168): the answer stands after ``####``."""
    gold = after_hashes(_text(row, "answer"))
    return Problem("", _text(row, "question"), gold, "number" if plain_number(gold) else "math")


def svamp(row: Row) -> Problem:
    """SVAMP (arXiv:2103.07191): body and question are two columns."""
    body = _text(row, "Body")
    stop = "" if body.endswith((".", "?", "!", ",")) else "."
    gold, kind = read_gold(row["Answer"])
    return Problem("", f"{body}{stop} {_text(row, 'Question')}", gold, kind)


def asdiv(row: Row) -> Problem:
    """ASDiv (arXiv:2106.15772): a number with its unit, or text."""
    gold = number_with_unit(_text(row, "answer"))
    question = f"{_text(row, 'body')} {_text(row, 'question')}"
    if gold is None:
        return Problem("", question, _text(row, "answer"), "text")
    return Problem("", question, gold, "number")


def mmlu(row: Row) -> Problem:
    """MMLU (arXiv:2009.03300): the answer is an index, a letter or an option."""
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


def commonsenseqa(row: Row) -> Problem:
    """CommonsenseQA (arXiv:1811.00937): options with labels."""
    if not isinstance(row["choices"], Mapping):
        raise _unfit(row, "choices", "an object with 'label' and 'text'")
    labels, texts = row["choices"].get("label"), row["choices"].get("text")
    if not isinstance(labels, list) or not isinstance(texts, list) or len(labels) != len(texts):
        raise UnusableRowError("'choices' holds no lists 'label' and 'text' of one length")
    answer = row["answerKey"]
    gold = labels.index(answer) if answer in labels else -1
    return _choice(_text(row, "question"), texts, gold)


def medmcqa(row: Row) -> Problem:
    """MedMCQA (arXiv:2203.14371): four options, and the index of the right one."""
    gold = row["cop"] if isinstance(row["cop"], int) else -1
    return _choice(_text(row, "question"), [row[f"op{letter}"] for letter in "abcd"], gold)


def gpqa(row: Row) -> Problem:
    """GPQA (arXiv:2311.12022): the right option comes first."""
    options = ["Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3))]
    return _choice(_text(row, "Question"), [_text(row, option) for option in options], 0)


def final_answer(row: Row) -> Problem:
    """OlympiadBench (arXiv:2402.14008) and DeepMath (arXiv:2504.11456)."""
    gold, kind = read_gold(row["final_answer"])
    gold = without_dollars(gold)
    kind = "list" if kind == "list" or row.get("is_multiple_answer") is True else kind_of(gold)
    context = row.get("context")
    question = _text(row, "question")
    if isinstance(context, str) and context.strip():
        question = f"{context.strip()}\n{question}"
    return Problem("", question, gold, kind, tolerance=read_tolerance(row.get("error")))


def dapo(row: Row) -> Problem:
    """DAPO-Math-17k (arXiv:2503.14476): a chat, and a rule-based reward's truth."""
    reward = row["reward_model"]
    if not isinstance(reward, Mapping):
        raise UnusableRowError("'reward_model' holds no 'ground_truth'")
    gold, kind = read_gold(reward.get("ground_truth"))
    return Problem("", bare_problem(_prompt(row, "prompt")), gold, kind)


def humaneval(row: Row) -> Problem:
    """HumanEval (arXiv:2107.03374) and HumanEval+ (arXiv:2305.01210)."""
    # Leading and trailing white space is part of a program.
    prompt, solution = _source(row, "prompt"), _source(row, "canonical_solution")
    return _code(
        row, prompt, solution, {"entry_point": _source(row, "entry_point"), "code_prompt": prompt}
    )


def mbppplus(row: Row) -> Problem:
    """MBPP+ (arXiv:2305.01210): an assertion of the tests names the function."""
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
        raise UnusableRowError("'entry_point' is not the name of a function")
    return Problem("", question, solution, "code", meta=meta)


def _source(row: Row, column: str) -> str:
    """A program as it stands."""
    _text(row, column)
    return row[column]


def hle(row: Row) -> Problem | None:
    """Humanity's Last Exam (arXiv:2501.14249), its items without a picture."""
    if row.get("image"):
        return None  # the subset that can be read as text
    return Problem("", _text(row, "question"), _text(row, "answer"), "judged")


def short(question: str, kind: AnswerKind) -> RowReader:
    """Columns ``question`` and ``answer`` as they are, with answers of that ``kind``."""
    return lambda row: Problem("", _text(row, question), _text(row, "answer"), kind)


def pair(question: str, answer: str) -> RowReader:
    """Two columns by name; the answer is read by its looks."""

    def read(row: Row) -> Problem:
        gold, kind = read_gold(row[answer])
        return Problem("", _prompt(row, question), gold, kind)

    return read


def solution(question: str) -> RowReader:
    """A question with its worked solution, which marks the answer."""

    def read(row: Row) -> Problem:
        solution = _text(row, "solution")
        gold, kind = read_gold(solution)
        if len(gold) > _LONGEST_UNMARKED and gold == solution:
            raise UnusableRowError("'solution' marks no answer with \\boxed{} or ####")
        gold = without_dollars(gold)
        kind = kind if kind == "list" else kind_of(gold)
        return Problem("", bare_problem(_prompt(row, question)), gold, kind)

    return read


def bare_problem(prompt: str) -> str:
    """The problem without the instruction before and after it; other text is left as it is."""
    opening = _BEFORE.match(prompt)
    if opening is None:
        return prompt.strip()
    body = prompt[opening.end() :]
    for closing in _AFTER.finditer(body):
        if closing.end() == len(body):
            body = body[: closing.start()]
            break
    return body.strip()
