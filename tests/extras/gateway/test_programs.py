"""Programs by themselves: their threads, and what a command leaves behind."""

import asyncio
import gc
import threading
import warnings
from contextvars import ContextVar
from typing import Any

from coterie.datatypes import Problem
from coterie.extras.gateway.programs import Endpoints, FunctionProgram, read_command
from coterie.extras.gateway.session import Ended

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

    def run(endpoints: Any, problem: Any) -> Any:
        before = mark.get()
        mark.set("mine")
        return threading.get_ident(), before

    first, second = (ended.result for ended in play(FunctionProgram(run), FunctionProgram(run)))
    assert first == second
    assert second[1] == "none"


def test_a_program_that_hangs_keeps_its_thread() -> None:
    hangs, go = threading.Event(), threading.Event()

    def hang(endpoints: Any, problem: Any) -> None:
        hangs.set()
        go.wait(20)

    def run(endpoints: Any, problem: Any) -> str:
        return "7"

    async def both() -> Ended:
        loop = asyncio.get_running_loop()
        late, ended = loop.create_future(), loop.create_future()
        FunctionProgram(hang)(ENDPOINTS, PROBLEM, late.set_result)
        await asyncio.to_thread(hangs.wait, 10)
        FunctionProgram(run)(ENDPOINTS, PROBLEM, ended.set_result)
        done = await asyncio.wait_for(ended, 10)
        assert not late.done()
        go.set()
        await asyncio.wait_for(late, 10)
        return done

    assert asyncio.run(both()) == Ended("7")
