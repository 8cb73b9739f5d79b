"""The processes of a run on this machine alone, without Ray: the same workers, spawned."""

import multiprocessing
import os
import pickle
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from coterie.agents.engine.processes import end_with_parent, no_interrupts
from coterie.cluster.actor import Actor, Died, died, has_room, no_room
from coterie.cluster.worker import Worker
from coterie.datatypes import UserError, reason_of


class Machine:
    """This machine in the place of a :class:`coterie.cluster.actor.Cluster`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="coterie-ranks-")
        self._meetings = 0
        self._gpus: list[list[int]] = []
        """By the number of a place."""

    def has_gpus(self) -> bool:
        """Whether there is one."""
        import torch

        return torch.cuda.is_available()

    def reserve(self, needs: Mapping[str, Mapping[str, float]]) -> None:
        """A GPU for each process that needs one.

        Raises:
            UserError: there are fewer, or fewer cores.
        """
        import torch

        there = {"CPU": float(os.cpu_count() or 1), "GPU": float(torch.cuda.device_count())}
        if not has_room(needs, there):
            raise no_room("this machine", needs, there, there)
        free = iter(range(torch.cuda.device_count()))
        self._gpus = [[next(free)] if need.get("GPU") else [] for need in needs.values()]

    def place(self, place: int, need: Mapping[str, float]) -> dict[str, Any]:
        """Options of the process that takes the place of that number."""
        return {"gpus": self._gpus[place]}

    def meeting(self) -> str:
        """Where ranks find each other: see :func:`coterie.models.shards.join_ranks`."""
        self._meetings += 1
        return f"{self._folder.name}/{self._meetings}"

    def close(self) -> None:
        """Delete what :meth:`meeting` named."""
        self._folder.cleanup()


@dataclass(frozen=True)
class _Running:
    process: BaseProcess
    pipe: Connection
    thread: ThreadPoolExecutor
    """Asks one thing after another."""


class Process(Actor):
    """A worker in a process of this machine."""

    def start(self) -> None:
        """See :meth:`Actor.start`."""
        self.stop()
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        what = (theirs, self.options["gpus"], self.name, self.arguments, dict(self.more))
        process = context.Process(target=_serve, args=what, daemon=True)
        with no_interrupts():
            process.start()
        theirs.close()
        self.handle = _Running(process, ours, ThreadPoolExecutor(1))

    def begin(self, verb: str, *arguments: Any) -> Future[Any]:
        """See :meth:`Actor.begin`; what another process has begun to find may be an argument."""
        return self.handle.thread.submit(self._exchange, self.handle.pipe, verb, arguments)

    def result(self, begun: Future[Any]) -> Any:
        """See :meth:`Actor.result`."""
        return begun.result()

    def future(self, begun: Future[Any]) -> Future[Any]:
        """See :meth:`Actor.future`."""
        return begun

    def locate(self) -> None:
        """See :meth:`Actor.locate`."""
        if not self.handle.process.is_alive():
            raise Died(died(self.name))
        device = ", ".join(f"GPU {gpu}" for gpu in self.options["gpus"]) or "CPU"
        where = f"process {self.handle.process.pid}"
        self.row = {"process": self.name, "roles": ", ".join(self.roles), "node": "here",
                "address": where, "device": device}  # fmt: skip

    def stop(self) -> None:
        """See :meth:`Actor.stop`."""
        if self.handle is not None:
            self.handle.process.kill()
            self.handle.process.join()
            self.handle.thread.shutdown()
            self.handle.pipe.close()
            self.handle = None

    def _exchange(self, pipe: Connection, verb: str, arguments: tuple[Any, ...]) -> Any:
        given = [one.result() if isinstance(one, Future) else one for one in arguments]
        try:
            pipe.send_bytes(pickle.dumps((verb, given)))
            found = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            raise Died(died(self.name)) from None
        if isinstance(found, UserError):
            raise found
        return found


def _serve(
    pipe: Connection, gpus: list[int], name: str, arguments: Any, more: dict[str, Any]
) -> None:
    """The life of such a process."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = seen.split(",") if seen else []
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names[i] if names else str(i) for i in gpus)
    end_with_parent()
    worker = Worker(name, *arguments, **more)
    with suppress(EOFError, OSError):
        while True:
            verb, given = pickle.loads(pipe.recv_bytes())
            try:
                found = getattr(worker, verb)(*given)
            except UserError as error:
                found = error
            except Exception as error:
                found = UserError(f"{name} failed: {type(error).__name__}: {reason_of(error)}")
            pipe.send_bytes(pickle.dumps(found))
