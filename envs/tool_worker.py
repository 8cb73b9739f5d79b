"""The process in which tools run: one JSON line in, one JSON line out.

A question is ``[a random number, name of the tool, its arguments]``. The reply is
``{"number": that number, "result": text}``, or with ``"fault": why``: what a tool writes by itself
answers no question. A tool may hang or crash: the parent kills the process at the deadline, and the
process ends itself a little later where its parent is gone.
"""

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from coterie.cli.plugins import load
from coterie.datatypes import cause_of
from coterie.rewards.grading.checker_worker import (
    GRACE_S,
    end_if_forked,
    take_streams,
    why_not_loaded,
)


def as_text(result: Any, characters: int) -> str:
    """Return a tool's result as text: JSON for anything else than text, shortened."""
    if not isinstance(result, str):
        try:
            result = json.dumps(result, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):
            result = str(result)
    cut = len(result) - characters
    return result if cut <= 0 else f"{result[:characters]} ... ({cut:,} characters left out)"


def serve(
    tools: Mapping[str, Callable[..., Any]],
    questions: TextIO,
    replies: TextIO,
    characters: int,
    deadline_s: float,
) -> None:
    """Answer questions until there are no more."""
    own = os.getpid()
    print("ready", file=replies, flush=True)
    for line in questions:
        number, name, arguments = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, deadline_s + GRACE_S)
        try:
            reply = {"result": as_text(tools[name](**arguments), characters)}
        # A tool that exits (SystemExit) has failed, too.
        except BaseException as error:
            reply = {"fault": cause_of(error)}
        end_if_forked(own)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps({"number": number, **reply}), file=replies, flush=True)


def main(paths: Sequence[str], characters: int, deadline_s: float) -> None:
    """Run the tools ``pkg.module:function`` until standard input ends."""
    questions, replies = take_streams()
    try:
        tools = {path.rpartition(":")[2]: load(path, "") for path in paths}
    except (Exception, SystemExit) as error:
        print(why_not_loaded(error), file=replies, flush=True)
        return
    serve(tools, questions, replies, characters, deadline_s)
