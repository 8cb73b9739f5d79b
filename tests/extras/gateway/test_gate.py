"""Calls of many programs are sampled in the same batches, however fast each of them is."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

from coterie.datatypes import Completion, Problem, Prompt, Sampling
from coterie.extras.gateway.gate import Gate
from coterie.rollouts import Collector, tasks_for
from coterie.rollouts.coalesce import Coalescer

from .conftest import babble, chat, client, user

Make = Callable[..., Any]
Batches = list[list[int]]


def batches_of(make: Make, program: Any, **settings: Any) -> Batches:
    """Seeds of the prompts that were sampled together, of 9 episodes, 6 at once."""
    batches: Batches = []

    def answer(prompts: list[Prompt]) -> list[Completion]:
        batches.append([prompt.seed for prompt in prompts])
        return [babble(prompt) for prompt in prompts]

    together = Coalescer(answer, key=lambda prompt: prompt.seed)

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        return await together(prompt)

    collector = Collector(
        lambda: make(program, **settings), {"alice": policy}, sampling=Sampling(9), concurrency=6
    )
    problems = [Problem(f"p{place}", "1 + 1 =", gold="2", kind="number") for place in range(9)]
    asyncio.run(collector.collect(tasks_for(problems, seed=3)))
    return batches


async def hesitating(endpoints: Any, problem: Any) -> float:
    """One to three calls, by the problem; pauses differ from run to run."""
    async with client(endpoints) as to:
        for _ in range(1 + int(problem.id[1:]) % 3):
            await asyncio.sleep(random.SystemRandom().random() / 20)
            await chat(to, [user("x")])
    return 1.0


def test_batches_do_not_depend_on_how_fast_programs_are(make: Make) -> None:
    runs = [batches_of(make, hesitating, gather_s=30.0) for _ in range(3)]
    assert runs[0] == runs[1] == runs[2]
    # Six begin. Two have one call each, and end where the others ask for the second time.
    assert [len(batch) for batch in runs[0]][:2] == [6, 4]
    assert sum(map(len, runs[0])) == 18


def test_a_call_waits_no_longer_than_the_limit() -> None:
    async def waits() -> float:
        loop, opened, start = asyncio.get_running_loop(), asyncio.Event(), time.monotonic()
        gate = Gate(loop, 1.0)
        gate.enter("ready")
        gate.enter("slow")
        gate.wait("ready", lambda: opened.set)
        await asyncio.wait_for(opened.wait(), 9)
        return time.monotonic() - start

    assert 0.9 < asyncio.run(waits()) < 1.9


def test_an_abandoned_episode_delays_no_other(make: Make) -> None:
    """The player is told of its deadline, and resets the environment or leaves it."""
    gave_up = make(hesitating, gather_s=30.0)

    async def both() -> float:
        begun = asyncio.create_task(gave_up.areset(seed=1))
        await asyncio.sleep(0)
        begun.cancel()
        await asyncio.wait([begun])
        await asyncio.to_thread(gave_up.close)
        start = time.monotonic()
        env = make(hesitating, gather_s=30.0)
        await env.areset(seed=1)
        await asyncio.to_thread(env.close)
        return time.monotonic() - start

    assert asyncio.run(both()) < 10.0
