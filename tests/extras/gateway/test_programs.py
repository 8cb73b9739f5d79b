"""Programs by themselves: their threads, and what a command leaves behind."""

import asyncio
import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from coterie.datatypes import Problem, UserError
from coterie.extras.gateway.programs import Endpoints, FunctionProgram, read_command
from coterie.extras.gateway.session import Ended

from .conftest import run, saying

Make = Callable[..., Any]
PROBLEM = Problem(id="p", question="q", gold="7")
ENDPOINTS = Endpoints("http://127.0.0.1:1", {"": "key"})


def play(*programs: Any) -> list[Ended]:
    """How they end, each after the one before."""

    async def in_turn() -> list[Ended]:
        ends = []
        for program in programs:
            ended = asyncio.get_running_loop().create_future()
            program(ENDPOINTS, PROBLEM, ended.set_result)
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
    assert done == Ended("7")
    assert not [str(warning.message) for warning in seen]


def test_a_thread_plays_one_program_after_the_other() -> None:
    """And none sees a context variable of another."""
    mark: ContextVar[str] = ContextVar("mark", default="none")

    def answer(endpoints: Any, problem: Any) -> Any:
        before = mark.get()
        mark.set("mine")
        return threading.get_ident(), before

    first, second = (
        ended.result for ended in play(FunctionProgram(answer), FunctionProgram(answer))
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

    async def both() -> Ended:
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

    assert asyncio.run(both()) == Ended("7")


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
        ("print(json.dumps({'rewards': {'alice': 0.25}}))", 0.25, "ok"),
        ("print(json.dumps({'rewards': {'alice': [0.5]}}))", 0.5, "ok"),
        ("sys.exit('out of luck')", 0.0, "ended with 1: out of luck"),
        ("print('x' * (1 << 21))", 0.0, "wrote more than"),
        ("import time; time.sleep(60)", 0.0, "did nothing for 6 s"),
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


@pytest.mark.parametrize("line", ["", "no-such-program x", "python 'unclosed"])
def test_a_command_that_is_none_is_refused(make: Make, line: str) -> None:
    with pytest.raises(UserError, match="env 'command:"):
        make(line)
