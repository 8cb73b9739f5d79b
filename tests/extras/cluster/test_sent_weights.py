"""A whole run whose weights are sent to engines apart: by stand-ins for vLLM's engines and NCCL."""

import asyncio
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch

from coterie.agents.team.backend import Died
from coterie.datatypes import UserError, reason_of
from coterie.extras.cluster.actor import Actor
from coterie.training.session import Session

Play = Callable[..., dict[str, bytes]]
VLLM = ("--engine", "vllm", "--rollout.problems-per-step", "2", "--env.max-new-tokens", "24")
SENT = (
    "--vllm.weights", "transfer", "--cluster.address", "local",
    "--agents.bob.engine-replicas", "2", "--agents.alice.engine-replicas", "1",
)  # fmt: skip


class Meeting:
    """A group that has met at a port: all of its ranks send or receive together."""

    made: dict[int, "Meeting"]
    lock = threading.Lock()

    def __init__(self, size: int) -> None:
        self.size, self.all, self.weights = size, threading.Barrier(size), dict[str, Any]()

    @classmethod
    def at(cls, port: int, size: int) -> "Meeting":
        with cls.lock:
            return cls.made.setdefault(port, cls(size))


class Trainer:
    """In place of vLLM's."""

    def __init__(self, weights: Any, rank: int, host: str, port: int, size: int) -> None:
        self.weights, self.met = weights, Meeting.at(port, size)
        self.met.all.wait(20)

    def send_weights(self) -> None:
        self.met.weights = {name: weight.clone() for name, weight in self.weights}
        self.met.all.wait(20)

    def shutdown(self) -> None:
        self.met.all.abort()


class Together(Actor):
    """Processes in one thread, whose event loop they share."""

    loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        self.handle = self.worker(self.name, *self.arguments, **self.more)

    def begin(self, verb: str, *arguments: Any) -> Future[Any]:
        handle = self.handle

        async def do() -> Any:
            if handle is None:
                raise Died(f"{self.name} has died")
            outcome = getattr(handle, verb)(*arguments)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return asyncio.run_coroutine_threadsafe(do(), self.loop)

    def result(self, begun: Future[Any]) -> Any:
        try:
            return begun.result(60)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{self.name} failed: {reason_of(error)}") from error

    def future(self, begun: Future[Any]) -> Future[Any]:
        return begun

    def stop(self) -> None:
        self.handle = None


@pytest.fixture
def sends(
    fake_cluster: Any, file_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[str]]:
    """Has weights sent by stand-ins; what engines have been asked."""
    asked: list[str] = []
    Meeting.made = {}

    async def join(self: Any, meeting: Mapping[str, Any]) -> None:
        asked.append(f"join {meeting['rank_offset']} of {meeting['world_size']}")
        self.met = Meeting.at(meeting["master_port"], meeting["world_size"])
        await asyncio.to_thread(self.met.all.wait, 20)

    async def receive(self: Any, described: Mapping[str, Any]) -> None:
        asked.append("receive")
        await asyncio.to_thread(self.met.all.wait, 20)
        assert list(self.met.weights) == described["names"]
        handle = self._base._handle
        with torch.no_grad():
            for name, weight in handle.causal_lm.state_dict().items():
                if name in self.met.weights:  # a tied head is not
                    weight.copy_(self.met.weights[name])
        handle.version += 1  # its sampler has copies of its own

    async def forget_prefixes(self: Any) -> None: ...

    monkeypatch.setattr(file_engine, "forget_prefixes", forget_prefixes, raising=False)
    monkeypatch.setattr(file_engine, "join", join, raising=False)
    monkeypatch.setattr(file_engine, "receive", receive, raising=False)
    monkeypatch.setattr("coterie.extras.cluster.sender.open_trainer", Trainer)
    monkeypatch.setattr("coterie.extras.cluster.transfer.NOTICED_S", 0.2)
    monkeypatch.setattr("coterie.extras.cluster.pool.Actor", Together)
    monkeypatch.setattr("coterie.agents.vllm.settings._place", lambda *_: "cuda:0")
    monkeypatch.setattr("coterie.agents.vllm.fleet.cpu_width", lambda config: None)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    Together.loop = asyncio.new_event_loop()
    thread = threading.Thread(target=Together.loop.run_forever, daemon=True)
    thread.start()
    yield asked
    Together.loop.call_soon_threadsafe(Together.loop.stop)
    thread.join(20)
    Together.loop.close()


@pytest.mark.slow
def test_a_run_whose_weights_are_sent_is_the_run_in_this_process(
    sends: list[str], play: Play, nearly: Callable[..., None], tmp_path: Path
) -> None:
    killed: list[str] = []

    def kill(session: Session, step: int) -> None:
        pool: Any = session.team.backend
        if step == 2:
            bob = next(base for base in pool._bases if "bob" in base.roles)
            bob.separate_engines[1].stop()
            killed.append(bob.separate_engines[1].name)

    here = play(tmp_path / "here", *VLLM)
    there = play(tmp_path / "there", *VLLM, *SENT, before=kill)
    assert killed == ["engine 2 of bob"]
    nearly(there, here)
    # Alice's engine; of bob's the one in place of that which is dead, then both.
    meetings = ["join 1 of 2", "join 1 of 2", "join 1 of 3", "join 2 of 3"]
    assert [verb for verb in sends if verb != "receive"] == meetings
