"""Run the workers as spawned processes of this machine, without Ray."""

import asyncio
import inspect
import itertools
import multiprocessing
import os
import pickle
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from coterie.agents.team.backend import Died
from coterie.agents.vllm.processes import end_with_parent, no_interrupts
from coterie.datatypes import PolicyFailure, UserError, cause_of, reason_of
from coterie.extras.cluster.actor import Actor, died
from coterie.extras.cluster.resources import needed, too_small
from coterie.extras.cluster.worker import Worker

_ENDS_S = 5.0
"""Seconds that a process takes to end after its connection has."""
_OF_A_PROCESS = 200 << 20
"""Least memory of a process that has imported torch, in bytes."""


class Machine:
    """This machine, with the methods of :class:`coterie.extras.cluster.actor.Cluster`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="coterie-ranks-")
        self._meetings = 0
        self._gpus: list[list[int]] = []
        """GPU indices of each place."""

    def has_gpus(self) -> bool:
        """Whether this machine has a GPU."""
        import torch

        return torch.cuda.is_available()

    def reserve(self, needs: Mapping[str, Mapping[str, float]]) -> None:
        """Assign GPUs to the processes that need them.

        Raises:
            UserError: the machine has too few GPUs or cores, or too little memory.
        """
        import torch

        total = {"CPU": float(os.cpu_count() or 1), "GPU": float(torch.cuda.device_count())}
        if any(needed(needs, kind) > amount for kind, amount in total.items()):
            raise too_small("this machine", needs, total, total)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if len(needs) * _OF_A_PROCESS > memory:
            raise UserError(
                f"{len(needs)} processes need at least "
                f"{len(needs) * _OF_A_PROCESS / 2**30:.0f} GiB of memory, and this machine has "
                f"{memory / 2**30:.0f}; lower --agents.ROLE.learner-devices or "
                "--agents.ROLE.engine-replicas"
            )
        free = iter(range(torch.cuda.device_count()))
        self._gpus = [
            [next(free) for _ in range(int(need.get("GPU", 0)))] for need in needs.values()
        ]

    def place(self, number: int, need: Mapping[str, float]) -> dict[str, Any]:
        """Options that start a process at the reserved place ``number``."""
        return {"gpus": self._gpus[number]}

    def keep(self, value: Any) -> Any:
        """Return ``value`` unchanged; it is already in this process."""
        return value

    def meeting(self) -> str:
        """A new meeting point for ranks; see :func:`coterie.agents.models.shards.join_ranks`."""
        self._meetings += 1
        return f"{self._folder.name}/{self._meetings}"

    def close(self) -> None:
        """Delete the meeting points."""
        self._folder.cleanup()


@dataclass(frozen=True)
class _Running:
    process: BaseProcess
    pipe: Connection
    sender: ThreadPoolExecutor
    """Sends calls in order."""
    pending: dict[int, Future[Any]] = field(default_factory=dict)
    """Call number -> future of each unanswered call."""
    numbers: Iterator[int] = field(default_factory=itertools.count)


class Process(Actor):
    """A worker in a spawned process of this machine."""

    def start(self) -> None:
        """See :meth:`Actor.start`."""
        self.stop()
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        what = (theirs, self.options["gpus"], self.worker, self.name, self.arguments, self.more)
        # A process that starts child processes must not be a daemon.
        process = context.Process(target=_serve, args=what, daemon=self.worker is Worker)
        with no_interrupts():
            process.start()
        theirs.close()
        self.handle = _Running(process, ours, ThreadPoolExecutor(1))
        threading.Thread(target=self._listen, args=(self.handle,), daemon=True).start()

    def begin(self, verb: str, *arguments: Any) -> Future[Any]:
        """See :meth:`Actor.begin`."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # it gets a result even if its waiter has gone
        self.handle.sender.submit(self._send, self.handle, future, verb, arguments)
        return future

    def result(self, begun: Future[Any]) -> Any:
        """See :meth:`Actor.result`."""
        return begun.result()

    def future(self, begun: Future[Any]) -> Future[Any]:
        """See :meth:`Actor.future`."""
        return begun

    def stop(self) -> None:
        """See :meth:`Actor.stop`."""
        if self.handle is not None:
            self.handle.process.kill()
            self.handle.process.join()
            self.handle.sender.shutdown()
            self.handle = None

    def _send(
        self, to: _Running, future: Future[Any], verb: str, arguments: tuple[Any, ...]
    ) -> None:
        try:
            values = [
                argument.result() if isinstance(argument, Future) else argument
                for argument in arguments
            ]
            number = next(to.numbers)
            packed = pickle.dumps((number, verb, values))
        except Exception as error:
            # Such as an argument that is the result of another process, which failed.
            why = str(error) if isinstance(error, UserError) else cause_of(error)
            future.set_exception(UserError(f"the request to {self.name} could not be sent: {why}"))
            return
        to.pending[number] = future
        try:
            to.pipe.send_bytes(packed)
        except OSError:
            self._end(to)

    def _listen(self, to: _Running) -> None:
        try:
            while True:
                number, answer = pickle.loads(to.pipe.recv_bytes())
                future = to.pending.pop(number)
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        except Exception as error:
            ended = isinstance(error, EOFError | OSError)
            why = "" if ended else f"an answer cannot be read, {cause_of(error)}"
        to.pipe.close()  # before, so that no later call waits
        self._end(to, why)

    def _end(self, to: _Running, why: str = "") -> None:
        """Fail all unanswered calls with :class:`Died`; ``why``: the reason, if it is not how the
        process ended."""
        if not to.pending:
            return
        wait([to.process.sentinel], _ENDS_S)
        code = to.process.exitcode or 0
        if code and not why:
            why = f"signal {-code}" if code < 0 else f"exit code {code}"
        while to.pending:
            with suppress(KeyError):  # the other thread popped the last item
                to.pending.popitem()[1].set_exception(Died(died(self.name, why)))


def _serve(
    pipe: Connection, gpus: list[int], kind: type[Worker], name: str, arguments: Any, more: Any
) -> None:
    """The main function of a spawned process."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = seen.split(",") if seen else []
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names[i] if names else str(i) for i in gpus)
    end_with_parent()
    asyncio.run(_answer(pipe, kind(name, *arguments, **more), name))


async def _answer(pipe: Connection, worker: Worker, name: str) -> None:
    """Serve calls in order; coroutines run concurrently."""

    async def answer(number: int, verb: str, arguments: list[Any]) -> None:
        try:
            outcome = getattr(worker, verb)(*arguments)
            outcome = await outcome if inspect.isawaitable(outcome) else outcome
            packed = pickle.dumps((number, outcome))
        except (UserError, PolicyFailure) as error:
            packed = pickle.dumps((number, error))
        except Exception as error:
            failure = UserError(f"{name} failed: {type(error).__name__}: {reason_of(error)}")
            packed = pickle.dumps((number, failure))
        with suppress(OSError):  # the main process has ended
            pipe.send_bytes(packed)

    tasks = set[asyncio.Task[None]]()
    with suppress(EOFError, OSError):
        while True:
            call = pickle.loads(await asyncio.to_thread(pipe.recv_bytes))
            tasks.add(task := asyncio.create_task(answer(*call)))
            task.add_done_callback(tasks.discard)
