"""Programs by themselves: their threads, and what a command leaves behind."""

import asyncio
import gc
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import httpx2
import pytest

from coterie.datatypes import Problem
from coterie.extras.gateway import launcher
from coterie.extras.gateway.command_program import read_command
from coterie.extras.gateway.programs import Endpoints, FunctionProgram
from coterie.extras.gateway.session import ProgramResult

from .conftest import run, saying

Make = Callable[..., Any]
PROBLEM = Problem(id="p", question="q", gold="7")
ENDPOINTS = Endpoints("http://127.0.0.1:1", {"": "key"})
LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists no processes")


def play(*programs: Any, problem: Problem = PROBLEM) -> list[ProgramResult]:
    """How they end, each after the one before."""

    async def in_turn() -> list[ProgramResult]:
        ends = []
        for program in programs:
            ended = asyncio.get_running_loop().create_future()
            program(ENDPOINTS, problem, ended.set_result)
            ends.append(await asyncio.wait_for(ended, 20))
            await asyncio.sleep(0.05)  # its thread is free now
        return ends

    return asyncio.run(in_turn())


def test_a_command_that_is_killed_leaves_nothing_open() -> None:
    """Its outputs are full more often than not, and nobody reads them to their end."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        *floods, done = play(*[read_command("yes")] * 6, read_command("echo 7"))
        gc.collect()
    assert {flood.failure for flood in floods} == {"the program wrote more than 1,048,576 bytes"}
    assert done == ProgramResult("7")
    assert not [str(warning.message) for warning in seen]


def test_a_thread_plays_one_program_after_the_other() -> None:
    """And none sees a context variable of another."""
    mark: ContextVar[str] = ContextVar("mark", default="none")

    def answer(endpoints: Any, problem: Any) -> Any:
        before = mark.get()
        mark.set("mine")
        return threading.get_ident(), before

    first, second = (
        ended.value for ended in play(FunctionProgram(answer), FunctionProgram(answer))
    )
    assert first == second
    assert second[1] == "none"


def test_a_program_that_hangs_keeps_its_thread() -> None:
    hangs, go = threading.Event(), threading.Event()

    def hang(endpoints: Any, problem: Any) -> None:
        hangs.set()
        go.wait(20)

    def answer(endpoints: Any, problem: Any) -> str:
        return "7"

    async def both() -> ProgramResult:
        loop = asyncio.get_running_loop()
        late, ended = loop.create_future(), loop.create_future()
        FunctionProgram(hang)(ENDPOINTS, PROBLEM, late.set_result)
        await asyncio.to_thread(hangs.wait, 10)
        FunctionProgram(answer)(ENDPOINTS, PROBLEM, ended.set_result)
        done = await asyncio.wait_for(ended, 10)
        assert not late.done()
        go.set()
        await asyncio.wait_for(late, 10)
        return done

    assert asyncio.run(both()) == ProgramResult("7")


COMMAND = """
import json, os, sys, urllib.request
assert os.environ["COTERIE_ROLES"] == "alice"
problem = json.loads(os.environ["COTERIE_PROBLEM"])
assert "gold" not in problem
body = {"model": "alice", "messages": [{"role": "user", "content": problem["question"]}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps(body).encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
)
text = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
"""


@pytest.mark.parametrize(
    ("ending", "reward", "words"),
    [
        ("print(text)", 1.0, "ok"),
        ("open(os.environ['COTERIE_ANSWER'], 'w').write(text); print('chatter')", 1.0, "ok"),
        # An empty answer is an answer.
        ("open(os.environ['COTERIE_ANSWER'], 'w').close(); print(text)", 0.0, "ok"),
        ("print(json.dumps({'rewards': {'alice': 0.25}}))", 0.25, "ok"),
        ("print(json.dumps({'rewards': {'alice': [0.5]}}))", 0.5, "ok"),
        ("sys.exit('out of luck')", 0.0, "ended with 1: out of luck"),
        ("print('x' * (1 << 21))", 0.0, "wrote more than"),
        pytest.param(
            *("import time; time.sleep(60)", 0.0, "did nothing for 6 s"), marks=pytest.mark.slow
        ),
    ],
)
def test_a_command(make: Make, tmp_path: Path, ending: str, reward: float, words: str) -> None:
    script = tmp_path / "my agents.py"
    script.write_text(COMMAND + ending)
    env = make(f"{sys.executable} '{script}'", patience_s=6.0 if "sleep" in ending else 60.0)
    start = time.monotonic()
    (row,) = run(env, {"alice": saying("Answer: 2")}).trajectories
    assert (row.reward, words in row.status) == (reward, True)
    assert time.monotonic() - start < 50


def played(shell: str, problem: Problem = PROBLEM) -> ProgramResult:
    """How a command of the shell ends."""
    return play(read_command(f"sh -c {shlex.quote(shell)}"), problem=problem)[0]


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("ln -s /etc/hostname $COTERIE_ANSWER", "no regular file"),
        ("mkfifo $COTERIE_ANSWER", "no regular file"),
        # It takes no place on the disk.
        ("truncate -s 3G $COTERIE_ANSWER", "more than 1,048,576 bytes"),
    ],
)
def test_an_answer_that_is_no_small_file_fails_its_episode(shell: str, words: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = played(f"{shell}; echo 7")
    assert words in ended.failure
    assert ended.value is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB


@LINUX
def test_a_problem_that_no_variable_holds_is_named() -> None:
    fits, long = (Problem(id="p", question="я" * count, gold="7") for count in (60_000, 70_000))
    assert played("echo 7", fits) == ProgramResult("7")
    why = played("echo 7", long).failure
    assert re.match(r"a command cannot be given a problem of 140,\d{3} bytes \(Linux takes", why)


def processes(mark: str) -> list[int]:
    """Those whose command line has ``mark``."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                words = (folder / "cmdline").read_bytes()
                state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
                found += [int(folder.name)] if mark.encode() in words and state != b"Z" else []
    return found


LEAVING = {
    "a session": "setsid sleep {mark} & echo 7",
    "its parent": "(setsid sh -c 'sleep {mark} & sleep {mark}' &) ; echo 7",
    "no outputs": "setsid sleep {mark} >/dev/null 2>&1 </dev/null & echo 7",
}


@LINUX
@pytest.mark.parametrize("how", LEAVING)
def test_background_processes_of_a_command_end_with_it(how: str) -> None:
    mark = f"4{time.time_ns() % 10**8}"
    assert played(LEAVING[how].format(mark=mark)) == ProgramResult("7")
    assert processes(mark) == []


@LINUX
def test_a_tree_of_processes_is_killed_in_all_generations_at_once() -> None:
    mark = f"6{time.time_ns() % 10**8}"
    tree = f"setsid sh -c 'setsid sleep {mark} & wait' & wait"
    with subprocess.Popen(["sh", "-c", tree]):
        try:
            while not processes(f"sleep\0{mark}"):
                time.sleep(0.02)
            assert len(found := processes(mark)) == 3
            assert {*found} <= {*launcher._descendants()}
        finally:
            for pid in processes(mark):
                os.kill(pid, signal.SIGKILL)


@LINUX
def test_a_command_that_is_stopped_ends_with_all_that_it_started() -> None:
    mark = f"5{time.time_ns() % 10**8}"

    async def stopped() -> None:
        command = read_command(f"sh -c 'setsid sleep {mark} & setsid sleep {mark}; sleep {mark}'")
        stop = command(ENDPOINTS, PROBLEM, lambda ended: None)
        while len(processes(f"sleep\0{mark}")) < 2:
            await asyncio.sleep(0.02)
        stop()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(stopped())
    assert processes(mark) == []


HOLDER = """
import asyncio, os, signal, sys
from coterie.datatypes import Problem
from coterie.extras.gateway.command_program import read_command
from coterie.extras.gateway.programs import Endpoints

async def main():
    command = read_command(sys.argv[1])
    command(Endpoints("http://127.0.0.1:1", {"": "key"}), Problem(id="p", question="q", gold="7"),
            lambda ended: None)
    while not os.path.exists(sys.argv[2]):
        await asyncio.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@LINUX
def test_commands_of_a_killed_trainer_end_and_leave_no_folder(tmp_path: Path) -> None:
    mark, note = f"6{time.time_ns() % 10**8}", tmp_path / "note"
    shell = f"dirname $COTERIE_ANSWER > {note}.part; mv {note}.part {note}; setsid sleep {mark}"
    command = f"sh -c {shlex.quote(shell)}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    holder = [sys.executable, "-c", HOLDER, command, str(note)]
    killed = subprocess.run(holder, env=environment, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    folder, limit = Path(note.read_text().strip()), time.monotonic() + 20
    while (processes(mark) or folder.exists()) and time.monotonic() < limit:
        time.sleep(0.05)
    assert processes(mark) == []
    assert not folder.exists()


@pytest.mark.parametrize(("shell", "code"), [("exit 3", 3), ("kill -9 $$", -9)])
def test_a_command_ends_as_it_does_by_itself(shell: str, code: int) -> None:
    assert played(f"echo why >&2; {shell}").failure == f"the program ended with {code}: why"


class Unclosed(httpx2.AsyncClient):
    """Closed by Python when it is found, as clients of SDKs are."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.itself = self

    def __del__(self) -> None:
        with suppress(RuntimeError):
            asyncio.get_running_loop().create_task(self.aclose())


def test_clients_that_are_not_closed_end_quietly(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    async def program(endpoints: Any, problem: Any) -> float:
        gc.collect()  # finds those of the episode before
        await asyncio.sleep(0.01)
        headers = {"authorization": f"Bearer {endpoints.api_key}"}
        body = {"model": "alice", "messages": [{"role": "user", "content": "x"}]}
        to = Unclosed(base_url=endpoints.base_url, headers=headers)
        assert (await to.post("/chat/completions", json=body)).status_code == 200
        return 1.0

    for _ in range(3):
        (row,) = run(make(program), {"alice": saying("y")}).trajectories
        assert row.as_learned().trainable
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
