"""The process that runs a model's program: it receives arguments and sends back results.

It never sees the tests. It is started as a file, so it imports neither this project nor the
caller's main module.
"""

import inspect
import os
import sys
import types
from collections.abc import Coroutine
from pathlib import Path
from typing import Any


def main(memory: int, cpu_s: int, numpy_folder: str = "") -> None:
    """Prepare, load the program, and answer calls until the other side stops asking.

    Args:
        memory: limit of the address space, in bytes.
        cpu_s: limit of processor time, in seconds.
        numpy_folder: folder that contains numpy, for a program that uses it.
    """
    sys.path.insert(0, str(Path(__file__).parent))
    from assemble import assemble, load
    from guard import guard, load_modules
    from wire import BrokenLinkError, Link, Peer

    sys.path.pop(0)
    load_modules()
    peer = Peer(Link(os.dup(0), os.dup(1)), longest=None)
    if numpy_folder:
        sys.path.append(numpy_folder)
        import numpy

        sys.path.pop()
        peer.array = numpy.array
    # Discard what the program prints; give it an empty standard input.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    guard(memory, cpu_s)
    try:
        peer.link.send("ready")
        job = peer.link.receive(longest=None)
        peer.returns_arguments = job["returns_arguments"]
        try:
            entry = job["program"]["entry"]
            # Dataclasses look up the module of their annotations.
            sys.modules["program"] = module = types.ModuleType("program")
            function = load(assemble(**job["program"]), entry, vars(module))

            def awaited(*arguments: Any, **named: Any) -> Any:
                value = function(*arguments, **named)
                return _awaited(value) if inspect.iscoroutine(value) else value

            peer.served.append(awaited)
            peer.link.send("loaded")
        except BaseException as error:
            peer.link.send(type(error).__name__[:100])
        while True:
            peer.serve(*peer.link.receive(longest=None)["call"])
    except BrokenLinkError:
        return


def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that waits for nothing outside of this process."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as end:
        return end.value


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
