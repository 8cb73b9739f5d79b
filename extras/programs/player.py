"""The process that runs a model's program: it receives arguments and sends back results.

It never sees the tests. It is started as a file, so it imports neither this project nor the
caller's main module.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

# Nothing can be imported after the guard is in place.
_MODULES = """
abc array ast base64 binascii bisect calendar cmath collections collections.abc contextlib copy
dataclasses datetime _strptime decimal difflib enum fractions functools hashlib heapq inspect io
itertools json keyword math numbers operator os queue random re statistics string struct textwrap
time traceback types typing unicodedata uuid warnings zlib
"""


def main(memory: int, cpu_s: int) -> None:
    """Prepare, load the program, and answer calls until the other side stops asking."""
    sys.path.insert(0, str(Path(__file__).parent))
    from guard import guard
    from wire import BrokenLinkError, Link, decode, encode

    sys.path.pop(0)
    for name in _MODULES.split():
        importlib.import_module(name)
    link = Link(os.dup(0), os.dup(1))
    # Discard what the program prints; give it an empty standard input.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    guard(memory, cpu_s)
    link.send("ready")
    try:
        job = link.receive(longest=None)
        function: Any = None
        try:
            space: dict[str, Any] = {"__name__": "program"}
            exec(compile(job["program"], "<program>", "exec"), space)
            function = space[job["entry"]]
            link.send("loaded")
        except BaseException as error:
            link.send({"error": type(error).__name__[:100]})
        while True:
            arguments, named = link.receive(longest=None)
            try:
                reply = {"value": encode(function(*decode(arguments), **decode(named)))}
            except BaseException as error:
                reply = {"error": type(error).__name__[:100]}
            link.send(reply)
    except BrokenLinkError:
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
