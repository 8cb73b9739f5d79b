"""Checkers other than the default: math-verify, and functions of a user.

Either runs in processes of its own with a time limit, since whatever a model has written may make
it hang, swell or crash. Such an answer counts as wrong, and is counted.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from coterie.datatypes import AnswerKind, Problem, UserError, Verdict
from coterie.rewards.grading.answers import after_thinking, extract
from coterie.rewards.grading.answers.pool import Program, WorkerPool, is_object

DEFAULT, MATH_VERIFY = "default", "math-verify"
MATHEMATICAL: tuple[AnswerKind, ...] = ("math", "number", "list")
"""What math-verify compares; other kinds stay with the default."""
LONGEST = 4096
"""Characters at the end of a response that stand for its answer if it states none by the default's
rules."""

_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from coterie.rewards.grading.checker_worker import main; main(sys.argv[2], float(sys.argv[3]))"
)


def check_name(name: str) -> None:
    """Check that ``name`` names a checker.

    Raises:
        UserError: one sentence that lists what there is.
    """
    if name not in (DEFAULT, MATH_VERIFY) and not _PATH.fullmatch(name):
        raise UserError(
            f"--scoring.checker is {name!r}; it must be {DEFAULT}, {MATH_VERIFY} or a function of "
            "yours, written pkg.module:function"
        )


def kinds_of(name: str) -> tuple[AnswerKind, ...] | None:
    """The kinds of problems that a checker judges; None for all kinds."""
    return {DEFAULT: (), MATH_VERIFY: MATHEMATICAL}.get(name)


class ProcessChecker:
    """A :class:`coterie.rewards.grading.scorer.Grader`: a checker in processes of its own.

    A function receives (answer, problem): the response after its thinking, and the
    :class:`coterie.datatypes.Problem`. It returns a truth value or a number in [0, 1]. 1 is right;
    a smaller number is partial credit (:attr:`coterie.datatypes.Verdict.credit`). A response that
    ends with its thinking is wrong, and the function does not see it.

    Args:
        name: ``math-verify`` or ``pkg.module:function``.
        workers: processes, started when the first answer comes.
        deadline_s: seconds for one answer; then its process is killed, and it counts as wrong.
        tell: receives a sentence about answers on which the checker fails; without it standard
            error does.
    """

    def __init__(
        self,
        name: str,
        *,
        workers: int = 1,
        deadline_s: float = 5.0,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        check_name(name)
        self.name = name
        self.title = f"--scoring.checker {name}"
        is_function = name != MATH_VERIFY
        self._method = "checker" if is_function else name
        program = Program(
            self.title,
            ("-P", "-W", "ignore", "-c", _START, json.dumps(sys.path), name),
            is_object,
            shows_errors=is_function,
            way_out="" if is_function else "try `python -c 'import math_verify'`",
        )
        self.pool = WorkerPool(workers, deadline_s, program)
        self.faults: Counter[str] = Counter()
        """Failed answers by the method of their verdicts."""
        self._tell = tell or _warn

    def __call__(self, requests: Sequence[tuple[str, Problem]]) -> list[Verdict]:
        """One verdict per (response, problem), in their order.

        Raises:
            UserError: the checker cannot be loaded.
        """
        shown = [(after_thinking(response), problem) for response, problem in requests]
        questions = [(text, _fields(problem)) for text, problem in shown if text.strip()]
        replies = iter(self.pool.run(questions))
        return [
            self._verdict(text, problem, next(replies))
            if text.strip()
            else Verdict(False, None, "none")
            for text, problem in shown
        ]

    def probe(self, problems: Sequence[Problem]) -> None:
        """Try the checker on the reference answer of each problem, and on a text without one.

        Raises:
            UserError: it cannot be loaded, raises, hangs, or gives no number in [0, 1].
        """
        tried = [
            (text, problem) for problem in problems for text in (problem.gold, "I am not sure.")
        ]
        tried = [(text, problem) for text, problem in tried if text.strip()]
        replies = self.pool.run([(text, _fields(problem)) for text, problem in tried])
        for (text, problem), reply in zip(tried, replies, strict=True):
            fault = self._read(reply).get("fault")
            if fault:
                raise UserError(
                    f"{self.title} {fault} on the answer {text!r:.60} to {problem.id}; it must "
                    "give true, false or a number from 0 to 1 for any text"
                )

    def close(self) -> None:
        """End its processes; they start again when they are needed."""
        self.pool.close()

    def _read(self, reply: str) -> dict[str, Any]:
        if reply == "timeout":
            return {"fault": f"took longer than {self.pool.deadline_s:g} s", "method": reply}
        if reply == "error":
            return {"fault": "ended its process", "method": reply}
        return json.loads(reply)

    def _verdict(self, text: str, problem: Problem, reply: str) -> Verdict:
        said = self._read(reply)
        answer = said["answer"] if "answer" in said else extract(text) or text.strip()[-LONGEST:]
        if fault := said.get("fault"):
            method = said.get("method", "error")
            self.faults[method] += 1
            count = self.faults.total()
            # Only the 1st, 10th and 100th fault: a checker may fail on every answer.
            if str(count).strip("0") == "1":
                these = "this answer" if count == 1 else f"{count} answers so far"
                self._tell(
                    f"{self.title} {fault} on an answer to {problem.id}: {these} "
                    f"count{'s' if count == 1 else ''} as wrong"
                )
            return Verdict(False, answer, method)
        number = float(said["number"])
        if answer is None and not number:
            return Verdict(False, None, "none")
        right = number == 1.0
        return Verdict(right, answer, self._method, partial=0.0 if right else number)


def _fields(problem: Problem) -> dict[str, Any]:
    """A problem as JSON data."""
    return {**vars(problem), "meta": dict(problem.meta)}


def _warn(sentence: str) -> None:
    if sys.stderr is not None:
        print(sentence, file=sys.stderr, flush=True)
