"""Programs that are a function, which plays in a thread; and where programs reach their roles."""

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any
from weakref import WeakSet

from coterie.datatypes import Problem, raised
from coterie.extras.gateway.rewards import plain
from coterie.extras.gateway.session import ProgramResult


@dataclass(frozen=True)
class Endpoint:
    """The address of one role."""

    base_url: str
    """For clients of chat completions and responses; ``.../v1``."""
    anthropic_url: str
    """For Anthropic's clients, which add ``/v1`` themselves."""
    api_key: str
    model: str
    """The name of the role."""


class Endpoints(Mapping[str, Endpoint]):
    """Role -> its endpoint. It is also an endpoint itself, whose requests name the role as the
    model."""

    def __init__(self, url: str, keys: Mapping[str, str]) -> None:
        self.base_url, self.anthropic_url, self.api_key = f"{url}/v1", url, keys[""]
        self._of = {
            role: Endpoint(self.base_url, url, key, role) for role, key in keys.items() if role
        }

    def __getitem__(self, role: str) -> Endpoint:
        return self._of[role]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def environment(self) -> dict[str, str]:
        """Environment variables that the usual clients read, and the key of each role."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": self.api_key,
            "ANTHROPIC_BASE_URL": self.anthropic_url,
            "ANTHROPIC_API_KEY": self.api_key,
            "COTERIE_ROLES": " ".join(self),
            **{f"COTERIE_KEY_{role.upper()}": self[role].api_key for role in self},
        }


Program = Callable[[Endpoints, Problem, Callable[[ProgramResult], None]], Callable[[], object]]
"""(endpoints, problem, done) -> stop: starts to play, and calls ``done`` at the end. The gateway's
loop calls all three."""


@dataclass(frozen=True)
class FunctionProgram:
    """``run(endpoints, problem)``, a coroutine function or not."""

    function: Callable[..., Any]

    def __call__(
        self, endpoints: Endpoints, problem: Problem, done: Callable[[ProgramResult], None]
    ) -> Callable[[], object]:
        """Play in a thread. Stopping cancels a coroutine; another function goes on until its next
        call, which is refused."""
        gateway_loop = asyncio.get_running_loop()
        running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

        async def cancellable(result: Any) -> Any:
            task = asyncio.current_task()
            assert task is not None
            running.append((asyncio.get_running_loop(), task))
            return await result

        def play() -> None:
            try:
                result = self.function(endpoints, problem)
                if inspect.isawaitable(result):
                    with asyncio.Runner(loop_factory=_ProgramLoop) as runner:
                        result = runner.run(cancellable(result))
                outcome = ProgramResult(plain(result))
            except BaseException as error:
                outcome = ProgramResult(failure=f"the program {raised(error)}"[:400])
            with suppress(RuntimeError):  # the gateway is closed
                gateway_loop.call_soon_threadsafe(done, outcome)

        def stop() -> None:
            for loop, task in running:
                with suppress(RuntimeError):  # the program has ended
                    loop.call_soon_threadsafe(task.cancel)

        _THREADS.run(play)
        return stop


class _ProgramLoop(asyncio.SelectorEventLoop):
    """The event loop of one program, which closes the program's connections when it ends.

    If a program does not close a client, Python may do so later, in the loop of another program.
    """

    def __init__(self) -> None:
        super().__init__()
        self._opened: WeakSet[asyncio.BaseTransport] = WeakSet()

    async def create_connection(self, *arguments: Any, **more: Any) -> Any:
        transport, protocol = await super().create_connection(*arguments, **more)
        self._opened.add(transport)
        return transport, protocol

    def close(self) -> None:
        if not self.is_closed() and (left := [t for t in self._opened if not t.is_closing()]):
            for transport in left:
                getattr(transport, "abort", transport.close)()
            self.run_until_complete(asyncio.sleep(0))  # lets the protocols learn of it
        super().close()


class _Threads:
    """Threads that each play one program at a time. A new one starts if all are busy, so a program
    that hangs blocks no other."""

    def __init__(self) -> None:
        self._idle: deque[SimpleQueue[Callable[[], None]]] = deque()

    def run(self, play: Callable[[], None]) -> None:
        """Call ``play``, which must not raise, without the context variables of other programs."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), daemon=True, name="program").start()
        inbox.put(play)

    def _work(self, inbox: "SimpleQueue[Callable[[], None]]") -> None:
        while True:
            Context().run(inbox.get())
            self._idle.append(inbox)


_THREADS = _Threads()
