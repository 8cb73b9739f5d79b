"""The process in which math-verify runs: one JSON line in, one JSON line out.

Started as a file, so that it imports neither this project nor the caller's main module. It may
hang, swell or crash: its parent kills it at the deadline, the kernel does so a little later even
when the parent is gone, and its memory is limited.
"""

import contextlib
import json
import logging
import os
import resource
import signal
import sys
from functools import lru_cache
from typing import Any

MEMORY = 4 << 30
"""Bytes of address space."""
GRACE_S = 2.0
"""Seconds after the deadline at which the process ends itself."""


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Any, ...]:
    from math_verify import LatexExtractionConfig, parse

    # No timeouts of its own: they use SIGALRM, and the process is killed as a whole.
    return tuple(
        parse(
            f"\\boxed{{{text}}}",
            extraction_config=[LatexExtractionConfig(boxed_match_priority=0)],
            fallback_mode="no_fallback",
            parsing_timeout=None,  # pyright: ignore[reportArgumentType]
        )
    )


def compare(gold: str, answer: str) -> str:
    """``equal``, ``different``, or ``unparsed`` where the gold answer is no formula."""
    from math_verify import verify

    left = _parsed(gold)
    if not left:
        return "unparsed"
    right = _parsed(answer)
    if not right:
        return "different"
    # The order matters: rules for intervals and equations follow the gold answer.
    return "equal" if verify(list(left), list(right), timeout_seconds=None) else "different"


def _limit_memory() -> None:
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def main(deadline_s: float) -> None:
    """Answer questions until standard input ends."""
    # The protocol owns the real standard output; whatever a library prints goes nowhere.
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    logging.disable(logging.CRITICAL)
    _limit_memory()
    compare("1", "2 + x")  # imports and grammars are loaded before the first deadline runs
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        gold, answer = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, deadline_s + GRACE_S)
        try:
            outcome = compare(gold, answer)
        except BaseException:  # TimeoutException of math-verify is no Exception
            outcome = "error"
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(outcome, file=replies, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
