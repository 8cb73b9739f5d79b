"""Programs in responses, run under guard: right ones, wrong ones, and ones that mean harm."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coterie.agents.team.settings import ScoringSettings
from coterie.datatypes import Problem, UserError
from coterie.extras.programs import sandbox as sandbox_module
from coterie.extras.programs.grader import ProgramGrader
from coterie.extras.programs.sandbox import ProgramLimits, ProgramTests, check_guard, run
from coterie.extras.programs.tool_use import ToolUseSettings
from coterie.extras.programs.wire import BrokenLinkError, Link

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard is Linux's")

SQUARE = ProgramTests(
    "f",
    "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-3) == 9\n",
    "import math\n\ndef f(x):\n    '''The square of x.'''\n",
)
# Ample, so that a busy machine changes no outcome; what never ends gets less.
AMPLE = ProgramLimits(deadline_s=60.0, memory_mb=256)
SHORT = ProgramLimits(deadline_s=1.0, memory_mb=256)
RIGHT = "def f(x):\n    return x * x\n"


def harm(body: str) -> str:
    """A right program that does something else first."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"import os, sys\ndef f(x):\n{lines}    return x * x\n"


@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        (RIGHT, "passed"),
        ("from typing import List\n" + RIGHT, "passed"),
        (harm("print('noise')\nsys.stderr.write('noise')"), "passed"),
        ("def f(x):\n    return x + x\n", "failed"),
        ("def f(x) return x\n", "failed"),
        ("g = 1\n", "failed"),
        ("def f(x):\n    return f(x)\n", "failed"),
        ("def f(x):\n    return (i for i in range(3))\n", "failed"),
    ],
)
def test_programs_are_held_to_their_tests(program: str, outcome: str) -> None:
    assert run(program, SQUARE, AMPLE) == outcome


def test_a_function_called_check_is_no_test() -> None:
    """Mbpp/56 asks for one; it was called with itself after its tests."""
    tests = ProgramTests("check", "for x, y in [(2, 4), (-3, 9)]:\n    assert check(x) == y\n", "")
    assert run("def check(x):\n    return x * x\n", tests, AMPLE) == "passed"
    assert run("def check(x):\n    return x + x\n", tests, AMPLE) == "failed"


HARM = {
    "a loop": ("def f(x):\n    while True: pass", "timeout"),
    "a loop on loading": ("while True: pass", "timeout"),
    "sleep": (harm("import time; time.sleep(1e6)"), "timeout"),
    "printing without end": (harm("while True: print('x' * 10**6)"), "timeout"),
    "ending before the tests": ("import os; os._exit(0)", "quit"),
    "ending in a test": (harm("os._exit(0)"), "quit"),
    "sys.exit on loading": ("import sys; sys.exit(0)", "failed"),
    "sys.exit in a test": (harm("sys.exit(0)"), "failed"),
    "a crash": ("import ctypes\ndef f(x): ctypes.string_at(0)", "quit"),
    "fork bomb": (harm("while True: os.fork()"), "failed"),
    "a subprocess": (harm("import subprocess; subprocess.run(['true'])"), "failed"),
    "threads": (harm("import _thread; _thread.start_new_thread(print, ())"), "failed"),
    "ten gigabytes": (harm("bytearray(10**10)"), "failed"),
    "ten gigabytes piece by piece": (
        harm("kept = []\nwhile True: kept.append(bytearray(10**7))"),
        "failed",
    ),
    "killing its parent": (harm("os.kill(os.getppid(), 9)"), "failed"),
    "a socket": (harm("import socket"), "failed"),
    "reading files": (harm("open('/etc/passwd').read()"), "failed"),
    "another process's memory": (harm("open(f'/proc/{os.getppid()}/mem', 'rb')"), "failed"),
    "writing files": (harm("open('left', 'w').write('x')"), "failed"),
    "flooding the pipes": (
        harm(
            "while True:\n"
            "    for end in range(3, 20):\n"
            "        try: os.write(end, b'x' * 65536)\n"
            "        except OSError: pass"
        ),
        "quit",
    ),
    "a result of two megabytes": ("def f(x): return 'x' * 2_000_000", "quit"),
}


@pytest.mark.parametrize("name", HARM)
def test_harm_is_wrong_and_stays_inside(name: str) -> None:
    program, outcome = HARM[name]
    assert run(program, SQUARE, SHORT if outcome == "timeout" else AMPLE) == outcome


def test_files_of_the_user_survive(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("still here")
    body = "\n".join(
        f"try: os.{call}({str(kept)!r}{rest})\nexcept OSError: pass"
        for call, rest in (("remove", ""), ("truncate", ", 0"), ("rename", ", '/tmp/x'"))
    )
    assert run(harm(body), SQUARE, AMPLE) == "passed"
    assert kept.read_text() == "still here"


def test_tests_may_use_what_the_prompt_defines_and_numpy() -> None:
    tests = ProgramTests(
        "f",
        "import numpy as np\ndef check(c):\n    assert np.allclose(helper(c(2)), 5.0)\n",
        "def helper(x):\n    return x + 1\n\ndef f(x):\n    '''Doc.'''\n",
    )
    assert run(RIGHT, tests, ProgramLimits(deadline_s=20)) == "passed"


def test_tests_by_name_and_plain_values_of_every_kind() -> None:
    test = "value = ({1: [2.5, None, True]}, {'a'}, frozenset({3}), b'x', 1j, float('inf'))\n"
    tests = ProgramTests(
        "same", f"{test}assert same(value) == value\nassert same(x=(1,)) == (1,)\n"
    )
    assert run("def same(x): return x", tests, AMPLE) == "passed"


def test_tests_that_cannot_be_run_are_told_apart() -> None:
    assert run(RIGHT, ProgramTests("f", "def check(:"), AMPLE) == "error"


def test_nothing_is_left_running() -> None:
    before = _children()
    run("while True: pass", SQUARE, ProgramLimits(deadline_s=0.3))
    assert _children() == before


def _children() -> set[str]:
    me = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    return set(Path(me).read_text().split()) if Path(me).exists() else set()


def test_children_die_with_their_parent(tmp_path: Path) -> None:
    code = (
        "from coterie.extras.programs.sandbox import ProgramLimits, ProgramTests, run\n"
        "run('while True: pass', ProgramTests('f', ''), ProgramLimits(deadline_s=300))\n"
    )
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        deadline = time.monotonic() + 60
        while len(processes := _with_folder(tmp_path)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(processes) == 2
    finally:
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 60
    while _with_folder(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _with_folder(tmp_path)


def _with_folder(folder: Path) -> list[str]:
    """Processes whose working folder lies in ``folder``."""
    processes: list[str] = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and str(folder) in os.readlink(process / "cwd"):
                processes.append(process.name)
        except OSError:
            continue
    return processes


def test_a_machine_without_a_guard_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    check_guard()
    # A folder whose guard always fails.
    monkeypatch.setattr(sandbox_module, "_HERE", Path(__file__).parent)
    with pytest.raises(UserError, match="programs cannot be guarded on this machine"):
        check_guard()


def test_a_problem_without_tests_is_refused() -> None:
    grade = ProgramGrader(AMPLE)
    with pytest.raises(UserError, match="needs entry_point, test and code_prompt"):
        grade([("x", Problem("bare", "q", "g", "code"))])


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        (ProgramLimits, {"deadline_s": 0}),
        (ProgramLimits, {"memory_mb": 1}),
        # No timer and no limit of processor time is infinite.
        (ProgramLimits, {"deadline_s": math.inf}),
        (ScoringSettings, {"deadline_s": math.inf}),
        (ScoringSettings, {"program_deadline_s": math.inf}),
        (ToolUseSettings, {"deadline_s": math.inf}),
    ],
)
def test_invalid_limits_are_refused(settings: type, limits: dict[str, float]) -> None:
    with pytest.raises(UserError, match="it must be"):
        settings(**limits)


def test_a_link_ends_with_its_other_side() -> None:
    reads, writes = os.pipe()
    os.write(writes, b"[1]\n{broken\n")
    link = Link(reads, writes)
    assert link.receive() == [1]
    with pytest.raises(BrokenLinkError):
        link.receive()
    os.close(writes)
    with pytest.raises(BrokenLinkError):
        link.receive()
    os.close(reads)
