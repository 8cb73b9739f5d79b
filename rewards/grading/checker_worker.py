r"""The process in which a checker other than the default runs: one JSON line in, one JSON line out.

A question is ``[answer, fields of the problem]``. The reply is ``{"number": n, "answer": text}``,
where ``answer`` is optional and the answer that the checker has read, or ``{"fault": why}``.
What the checker prints goes to standard error. It may hang or crash: its parent kills it at the
deadline, and it ends itself a little later where its parent is gone.
"""

import contextlib
import json
import logging
import numbers
import os
import signal
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TextIO

from coterie.cli.plugins import load
from coterie.datatypes import Problem, UserError, cause_of, raised

MATH_VERIFY = "math-verify"
MEMORY = 4 << 30
"""Bytes of address space for math-verify, whose sympy computes whatever a model writes. A user's
checker has no such limit: torch alone needs more."""
GRACE_S = 2.0
"""Seconds after the deadline at which the process ends itself."""
MOST_SHOWN = 4096
"""Characters of an answer, and of a fault, in a reply."""

Check = Callable[[str, Problem], dict[str, Any]]


def own_checker(path: str) -> Check:
    """The function that ``path`` (``pkg.module:function``) names, as a :data:`Check`.

    Raises:
        UserError: it cannot be imported, or is no function.
    """
    function: Any = load(path, "")
    if not callable(function):
        raise UserError(f"is a {type(function).__name__}, and must be a function")

    def check(answer: str, problem: Problem) -> dict[str, Any]:
        result = function(answer, problem)
        number = as_number(result)
        if number is None:
            return {"fault": f"gave {result!r:.80}"}
        return {"number": number}

    return check


def as_number(result: Any) -> float | None:
    """A checker's result as a number in [0, 1]; None for anything else.

    Truth values count, those of numpy and tensors with one element too.
    """
    if not isinstance(result, numbers.Real) and callable(getattr(result, "item", None)):
        result = result.item()
    if not isinstance(result, numbers.Real):
        return None
    number = float(result)
    return number if 0.0 <= number <= 1.0 else None


def math_verify_checker() -> Check:
    """math-verify's ``verify(parse(gold), parse(answer))``, with its own defaults.

    Its time limits use signals of a main thread; ours is the parent's.
    """
    logging.disable(logging.CRITICAL)
    _limit_memory()
    from math_verify import parse, verify

    @lru_cache(maxsize=256)
    def parsed(gold: str) -> list[Any]:
        return parse(as_latex(gold), parsing_timeout=None)  # type: ignore[arg-type]

    def check(answer: str, problem: Problem) -> dict[str, Any]:
        stated = parse(answer, parsing_timeout=None)  # type: ignore[arg-type]
        right = any(verify(parsed(gold), stated, timeout_seconds=None) for gold in problem.golds)
        shown = next((part for part in stated if isinstance(part, str)), None)
        return {"number": float(right), "answer": shown}

    return check


def as_latex(gold: str) -> str:
    r"""A gold answer where math-verify looks for one: a bare ``\frac12`` is no formula to it."""
    return gold if "$" in gold or "\\boxed" in gold else f"\\boxed{{{gold}}}"


def serve(check: Check, questions: TextIO, replies: TextIO, deadline_s: float) -> None:
    """Answer questions until there are no more."""
    own = os.getpid()
    print("ready", file=replies, flush=True)
    for line in questions:
        answer, fields = json.loads(line)
        fields |= {name: tuple(fields[name]) for name in ("choices", "alternatives")}
        signal.setitimer(signal.ITIMER_REAL, deadline_s + GRACE_S)
        try:
            reply = check(answer, Problem(**fields))
        # A checker that exits (SystemExit), and math-verify's TimeoutException, are faults too.
        except BaseException as error:
            reply = {"fault": raised(error)}
        end_if_forked(own)
        signal.setitimer(signal.ITIMER_REAL, 0)
        short = {name: v[:MOST_SHOWN] if isinstance(v, str) else v for name, v in reply.items()}
        print(json.dumps(short), file=replies, flush=True)


def end_if_forked(owner: int) -> None:
    """End a child that code of others has forked and not ended: it must not reply in its parent's
    place, nor read the next question.

    Args:
        owner: the number of the process that serves.
    """
    if os.getpid() != owner:
        os._exit(0)


def take_streams() -> tuple[TextIO, TextIO]:
    """Return (questions, replies), the real standard streams. Code of others may read, and print to
    standard error, without disturbing the protocol."""
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    with contextlib.suppress(OSError):  # closed by whoever started the run
        os.dup2(2, 1)
    return questions, replies


def main(name: str, deadline_s: float) -> None:
    """Run the checker ``name`` until standard input ends."""
    questions, replies = take_streams()
    try:
        check = math_verify_checker() if name == MATH_VERIFY else own_checker(name)
    except (Exception, SystemExit) as error:
        print(why_not_loaded(error), file=replies, flush=True)
        return
    serve(check, questions, replies, deadline_s)


def why_not_loaded(error: BaseException) -> str:
    """Why code of others cannot be loaded, as one line of ASCII."""
    why = str(error) if isinstance(error, UserError) else f"cannot be loaded: {cause_of(error)}"
    return " ".join(why.split()).rstrip(".").encode("ascii", "replace").decode()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
