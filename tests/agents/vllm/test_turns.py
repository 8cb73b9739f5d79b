"""Engines that share a device: one is awake, everybody is served, nobody waits for ever."""

import asyncio
import random

import pytest

from coterie.agents.vllm.turns import Turns


class Bed:
    """An engine that counts who is awake."""

    def __init__(self, awake: set["Bed"]) -> None:
        self.awake = awake
        self.woken = 0

    async def sleep(self) -> None:
        await asyncio.sleep(0)
        self.awake.discard(self)

    async def wake(self) -> None:
        await asyncio.sleep(0)
        assert not self.awake, "two engines are awake"
        self.awake.add(self)
        self.woken += 1


def beds(count: int) -> list[Bed]:
    awake: set[Bed] = set()
    return [Bed(awake) for _ in range(count)]


async def test_requests_to_one_engine_run_side_by_side() -> None:
    engines = beds(2)
    turns, inside, most = Turns(engines), 0, 0

    async def ask(engine: Bed) -> None:
        nonlocal inside, most
        async with turns.of(engine):
            inside += 1
            most = max(most, inside)
            assert engines[0].awake == {engine}
            await asyncio.sleep(0.001)
            inside -= 1

    # Each episode asks both at once: all of the first one's, then all of the other's.
    await asyncio.gather(*(ask(engine) for _ in range(20) for engine in engines))
    assert most == 20
    assert [engine.woken for engine in engines] == [1, 1]


@pytest.mark.parametrize("seed", range(5))
async def test_at_most_one_engine_is_awake_at_any_time(seed: int) -> None:
    rng = random.Random(seed)
    engines = beds(3)
    turns, served = Turns(engines), 0

    async def episode() -> None:
        nonlocal served
        for _ in range(6):
            engine = rng.choice(engines)
            async with turns.of(engine):
                assert engines[0].awake == {engine}
                await asyncio.sleep(rng.random() / 1000)
                assert engines[0].awake == {engine}
            served += 1

    await asyncio.wait_for(asyncio.gather(*(episode() for _ in range(12))), 20)
    assert served == 72


async def test_a_cancelled_request_gives_its_turn_back() -> None:
    first, second = beds(2)
    turns = Turns([first, second])
    release = asyncio.Event()

    async def ask(engine: Bed, until: asyncio.Event | None = None) -> None:
        async with turns.of(engine):
            if until:
                await until.wait()

    holding = asyncio.create_task(ask(first, release))
    waiting = [asyncio.create_task(ask(second)) for _ in range(3)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    release.set()
    await asyncio.wait_for(asyncio.gather(holding, *waiting[1:]), 5)
    # Cancelled between being granted and going on: the next one must not wait for it.
    task = asyncio.create_task(ask(second))
    other = asyncio.create_task(ask(first))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait_for(other, 5)


async def test_waking_an_engine_may_be_cancelled_at_any_moment() -> None:
    """A deadline that ends while engines change hands stops neither the change nor those behind."""
    for moments in range(8):
        first, second = beds(2)
        turns = Turns([first, second])

        async def ask(engine: Bed) -> None:
            async with turns.of(engine):  # noqa: B023 (awaited within the loop)
                assert engine.awake == {engine}

        await ask(first)
        waker = asyncio.create_task(ask(second))
        behind = asyncio.create_task(ask(second))
        for _ in range(moments):
            await asyncio.sleep(0)
        waker.cancel()
        await asyncio.wait_for(behind, 5)
        await asyncio.wait_for(ask(first), 5)
        # Cancelled alone: the change that it began is over before everybody sleeps.
        alone = asyncio.create_task(ask(second))
        for _ in range(moments):
            await asyncio.sleep(0)
        alone.cancel()
        await asyncio.sleep(0)
        await turns.rest()
        assert first.awake == set()
        await asyncio.wait_for(ask(second), 5)


async def test_an_engine_that_does_not_wake_fails_waiting_requests() -> None:
    first, second = beds(2)
    turns = Turns([first, second])

    async def ask(engine: Bed) -> None:
        async with turns.of(engine):
            pass

    async def dead() -> None:
        raise OSError("dead")

    second.wake = dead
    results = await asyncio.wait_for(
        asyncio.gather(ask(second), ask(second), return_exceptions=True), 5
    )
    assert [str(result) for result in results] == ["dead", "dead"]
    await asyncio.wait_for(ask(first), 5)


async def test_rest_puts_everybody_to_sleep_and_a_request_wakes() -> None:
    engines = beds(2)
    turns = Turns(engines)
    async with turns.of(engines[1]):
        pass
    await turns.rest()
    assert engines[0].awake == set()
    async with turns.of(engines[1]):
        assert engines[0].awake == {engines[1]}
