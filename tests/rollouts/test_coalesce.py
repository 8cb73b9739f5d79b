"""Many concurrent calls, one batch."""

import asyncio

import pytest

from coterie.rollouts.coalesce import Coalescer


def squares() -> tuple[Coalescer[int, int], list[list[int]]]:
    batches: list[list[int]] = []

    def answer(batch: list[int]) -> list[int]:
        batches.append(batch)
        return [x * x for x in batch]

    return Coalescer(answer, key=lambda x: x), batches


async def test_concurrent_calls_are_one_sorted_batch() -> None:
    ask, batches = squares()

    async def late(x: int, turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await ask(x)

    # Each call comes up to 5 turns of the loop after the one before: still one batch.
    got = await asyncio.gather(*(late(x, 5 * i) for i, x in enumerate((3, 1, 2))))
    assert got == [9, 1, 4]
    assert batches == [[1, 2, 3]]


async def test_a_later_request_comes_in_the_next_batch() -> None:
    ask, batches = squares()
    first = asyncio.create_task(ask(5))
    for _ in range(30):
        await asyncio.sleep(0)
    assert first.done()
    assert await ask(4) == 16
    assert batches == [[5], [4]]


async def test_answers_lead_to_new_questions() -> None:
    ask, batches = squares()

    async def two(x: int) -> int:
        return await ask(await ask(x))

    assert await asyncio.gather(two(2), two(3)) == [16, 81]
    assert batches == [[2, 3], [4, 9]]


async def test_what_the_batch_raises_every_call_raises_and_the_next_works() -> None:
    fail = True

    def answer(batch: list[int]) -> list[int]:
        if fail:
            raise ValueError("broken")
        return batch

    ask = Coalescer(answer, key=lambda x: x)
    results = await asyncio.gather(ask(1), ask(2), return_exceptions=True)
    assert [str(r) for r in results] == ["broken", "broken"]
    fail = False
    assert await ask(3) == 3


async def test_a_wrong_number_of_answers_is_an_error() -> None:
    ask = Coalescer(lambda batch: batch[1:], key=lambda x: x)
    with pytest.raises(ValueError, match="2 requests and 1 answers"):
        await asyncio.gather(ask(1), ask(2))


async def test_cancelled_calls_are_left_out() -> None:
    ask, batches = squares()
    calls = [asyncio.create_task(ask(x)) for x in (1, 2, 3)]
    await asyncio.sleep(0)
    calls[1].cancel()
    assert await asyncio.gather(calls[0], calls[2]) == [1, 9]
    assert calls[1].cancelled()
    assert batches == [[1, 3]]
    alone = asyncio.create_task(ask(7))
    await asyncio.sleep(0)
    alone.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    assert batches == [[1, 3]]


def test_a_loop_closed_midway_does_no_harm_to_the_next() -> None:
    ask, batches = squares()

    async def leave() -> None:
        task = asyncio.create_task(ask(1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()

    asyncio.run(leave())
    assert asyncio.run(ask(2)) == 4
    assert batches == [[2]]
