"""The process that runs the tests: it calls the program over a pipe; only it knows the verdict.

The tests come with a data set, so this process is guarded as well. Both processes are started as
files.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


class WrongError(Exception):
    """A call of the program raised an exception."""


def main(memory: int, cpu_s: int, reads: int, writes: int) -> None:
    """Run the tests of the job on standard input; write ``ready``, then one word as the verdict."""
    sys.path.insert(0, str(Path(__file__).parent))
    from guard import guard
    from wire import BrokenLinkError, Link, decode, encode

    sys.path.pop(0)
    job = json.load(sys.stdin)
    if "numpy" in job["test"]:
        # Guarded processes cannot import; the tests of EvalPlus compare with numpy.
        import numpy
        import numpy.testing  # noqa: F401
    import collections
    import copy
    import itertools
    import math
    import random
    import re  # noqa: F401

    verdicts = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    guard(memory, cpu_s)
    link = Link(reads, writes)
    broken = False

    def candidate(*arguments: Any, **named: Any) -> Any:
        nonlocal broken
        try:
            link.send([encode(arguments), encode(named)])
            reply = link.receive()
            if not isinstance(reply, dict) or len(reply) != 1:
                raise BrokenLinkError
            if "error" in reply:
                raise WrongError(str(reply["error"]))
            try:
                return decode(reply["value"])
            except Exception:
                raise BrokenLinkError from None
        except BrokenLinkError:
            broken = True
            raise

    def verdict() -> str:
        link.send({"program": job["program"], "entry": job["entry"]})
        if link.receive() != "loaded":
            return "failed"
        space: dict[str, Any] = {
            "__name__": "tests",
            "collections": collections,
            "copy": copy,
            "itertools": itertools,
            "math": math,
            "random": random,
        }
        try:
            # Tests may use what the prompt defines besides the function under test.
            exec(compile(job["prompt"], "<prompt>", "exec"), space)
            tests = compile(job["test"], "<tests>", "exec")
        except Exception:
            return "error"
        space[job["entry"]] = candidate
        try:
            exec(tests, space)
            if callable(space.get("check")):
                space["check"](candidate)
        except Exception:
            return "failed"
        return "passed"

    try:
        if link.receive() != "ready":
            raise BrokenLinkError
        os.write(verdicts, b"ready\n")
        outcome = verdict()
    except BrokenLinkError:
        outcome = "quit"
    # Tests that swallow every exception must not turn a program that quit into a right one.
    os.write(verdicts, b"quit\n" if broken else outcome.encode() + b"\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
