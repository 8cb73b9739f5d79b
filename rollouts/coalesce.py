"""One batched call for many concurrent requests."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Request = TypeVar("Request")
Answer = TypeVar("Answer")


_QUIET_TURNS = 8


class Coalescer(Generic[Request, Answer]):
    """Turns a synchronous batch function into an async call for a single request.

    A batch closes after eight rounds of the event loop without a new request. By then
    every coroutine has sent the requests that do not depend on a pending answer. The batch is
    sorted by ``key``, so the order of arrival does not matter. If ``answer`` raises, every call of
    the batch raises the same error. Calls cancelled before the batch closes are dropped.
    """

    def __init__(
        self,
        answer: Callable[[list[Request]], Sequence[Answer]],
        *,
        key: Callable[[Request], Any],
    ) -> None:
        self._answer = answer
        self._key = key
        self._waiting: list[tuple[Request, asyncio.Future[Answer]]] = []
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, request: Request) -> Answer:
        """Return the batch function's answer to ``request``."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            # Requests that still wait come from an event loop that was closed.
            self._waiting = []
            self._task = loop.create_task(self._serve())
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((request, future))
        return await future

    async def _serve(self) -> None:
        try:
            while self._waiting:
                await self._wait_for_silence()
                self._answer_all()
        finally:
            for _, future in self._waiting:
                future.cancel()

    async def _wait_for_silence(self) -> None:
        turns, seen = 0, len(self._waiting)
        while turns < _QUIET_TURNS:
            await asyncio.sleep(0)
            turns = turns + 1 if len(self._waiting) == seen else 0
            seen = len(self._waiting)

    def _answer_all(self) -> None:
        batch, self._waiting = self._waiting, []
        batch = [(request, future) for request, future in batch if not future.done()]
        if not batch:
            return
        try:
            batch.sort(key=lambda item: self._key(item[0]))
            answers = self._answer([request for request, _ in batch])
            if len(answers) != len(batch):
                raise ValueError(f"the batch had {len(batch)} requests and {len(answers)} answers")
        except Exception as error:
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), answer in zip(batch, answers):
            future.set_result(answer)
