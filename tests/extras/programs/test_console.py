"""What a model's lines of Python print, and what they may not do."""

import sys
import threading

import pytest

from coterie.extras.programs import console
from coterie.extras.programs.console import output_of
from coterie.extras.programs.sandbox import ProgramLimits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")
QUICK = ProgramLimits(deadline_s=1.0, memory_mb=256)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("7 + 8", "15\n"),
        ("x = 3\nprint(x)\nx * 2", "3\n6\n"),
        ("x = 3", ""),
        ("import math\nmath.factorial(5)", "120\n"),
        ("1 / 0", "ZeroDivisionError: division by zero\n"),
        ("open('/etc/passwd').read()", "PermissionError: [Errno 1] Operation not permitted"),
        ("import socket; socket.socket()", "Error"),
        ("print('\ud800')", "?\n"),
        ("import sys; sys.exit(3)", "SystemExit"),
        ("if", "SyntaxError: invalid syntax"),
        ("while True: pass", "killed: out of time or memory\n"),
        ("[0] * 10 ** 10", "MemoryError"),
    ],
)
def test_the_output_of_a_program(source: str, shown: str) -> None:
    output = output_of(source, QUICK)
    assert output == shown if shown.endswith("\n") or not shown else shown in output


def test_an_output_is_cut() -> None:
    assert output_of("'a' * 5000", QUICK, longest=10) == "a" * 10


def forging(message: str) -> str:
    """A program that writes ``message``, an expression, to its pipe."""
    return (
        f"import os\nmessage = {message} + b'\\n'\nfor end in range(3, 16):\n"
        "    try: os.write(end, message)\n    except OSError: pass\nos._exit(0)"
    )


@pytest.mark.parametrize(
    "message",
    [
        *("b'null'", "b'7'", "b'{}'", "b'{'", "b'\\xff\\xfe'", "b'[' * 100_000", "b'1' * 10_000"),
        *("b'{\"value\": [1]}'", "b'{\"error\": 3}'", "b'{\"error\": [[]]}'"),
        *("b'{\"call\": [0, 1, 2]}'", 'b\'{"value": "a", "error": 1}\''),
        "b'x' * 3_000_000",
    ],
)
def test_a_forged_reply_kills_the_program_alone(message: str) -> None:
    assert output_of(forging(message), QUICK).startswith(("killed", "a"))


@pytest.mark.parametrize(
    "message",
    [
        "b'{\"value\": \"' + b'x' * 900_000 + b'\"}'",
        "b'{\"error\": [[\"' + b'x' * 900_000 + b'\"]]}'",
    ],
)
def test_a_forged_reply_is_cut(message: str) -> None:
    assert output_of(forging(message), QUICK, longest=50) == "x" * 50


def test_a_source_without_bound_is_not_run() -> None:
    before = console._begun.cache_info().currsize
    assert output_of("1" + " " * console.LONGEST).startswith("killed: longer than 65,536")
    assert console._begun.cache_info().currsize == before


def test_the_same_lines_show_the_same_again() -> None:
    assert output_of("import random; random.random()") == output_of(
        "import random; random.random()"
    )


def test_nothing_is_left_behind() -> None:
    output_of("0", QUICK)  # the thread that waits for it stays
    before = set(threading.enumerate())
    console._begun.cache_clear()
    output_of("1 + 1", QUICK)
    # A timer that was called off ends when it is next awake.
    for thread in set(threading.enumerate()) - before:
        thread.join(QUICK.deadline_s / 2)
    assert set(threading.enumerate()) <= before
