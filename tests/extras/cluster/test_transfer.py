"""Who is asked what, in which order, when weights go from GPU to GPU: processes are stand-ins."""

import asyncio
import itertools
import os
import pickle
import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from coterie.agents.team.backend import Died
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.engine import EngineDied
from coterie.agents.vllm.processes import engine_environment
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import UserError
from coterie.extras.cluster import sender
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.bases import plan_bases
from coterie.extras.cluster.engine_worker import EngineWorker
from coterie.extras.cluster.sender import Sender
from coterie.extras.cluster.transfer import Transfer
from coterie.extras.cluster.worker import Worker
from tests.extras.cluster.conftest import HANGS, Party

TRANSFER = VllmSettings(weights="transfer")


@pytest.fixture
def said() -> list[tuple[Any, ...]]:
    return []


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.extras.cluster.transfer.NOTICED_S", 0.05)


def parties(said: list[tuple[Any, ...]], **learner: Any) -> tuple[Any, Any, Any]:
    ports = itertools.cycle([("10.0.0.1", 4001), ("10.0.0.1", 4002)])
    described = {"names": ["a"], "dtype_names": ["bfloat16"], "shapes": [[2]]}
    sender = Party("learner", said, **{"meet": ports, "connect": described, "send": 3} | learner)
    return sender, Party("engine 1", said), Party("engine 2", said)


def test_ranks_and_the_order_of_calls_of_a_learner_and_two_engines_of_two_gpus(
    said: list[tuple[Any, ...]],
) -> None:
    """One rank of the learner and 2 x 2 of the engines make 5; engines begin at ranks 1 and 3."""
    learner, *engines = parties(said)
    transfer = Transfer("bob", learner, span=2)
    assert transfer.give(engines, 3) == {}
    meeting = {"master_address": "10.0.0.1", "master_port": 4001, "world_size": 5}
    described = learner.answers["connect"]
    ready = [("engine 1", "prepare", "bob"), ("engine 2", "prepare", "bob")]
    sending = [
        ("engine 1", "receive", "bob", described),
        ("engine 2", "receive", "bob", described),
        ("learner", "send", "bob"),
        ("engine 1", "announce", "bob", 3),
        ("engine 2", "announce", "bob", 3),
    ]
    assert said == [
        *ready,
        ("learner", "meet"),
        ("learner", "connect", "bob", "10.0.0.1", 4001, 5),
        ("engine 1", "join", "bob", {**meeting, "rank_offset": 1}),
        ("engine 2", "join", "bob", {**meeting, "rank_offset": 3}),
        *sending,
    ]
    # The group is still there.
    said.clear()
    learner.answers["send"] = 4
    assert transfer.give(engines, 4) == {}
    assert [call[:2] for call in said] == [call[:2] for call in ready + sending]


def verbs(said: list[tuple[Any, ...]], name: str) -> list[str]:
    return [verb for party, verb, *_ in said if party == name]


def test_a_dead_engine_leads_to_a_new_group_without_those_who_waited_for_it(
    said: list[tuple[Any, ...]],
) -> None:
    learner, first, second = parties(said, send=HANGS)
    first.answers["receive"], second.answers["receive"] = HANGS, Died("engine 2 has died")
    transfer = Transfer("bob", learner, span=1)
    failed = transfer.give([first, second], 3)
    assert {name: type(error) for name, error in failed.items()} == {
        "engine 1": Died,
        "engine 2": Died,
    }
    assert "announce" not in [verb for _, verb, *_ in said]
    assert verbs(said, "learner")[-1] == "abandon"
    said.clear()
    first.end()
    first.handle, second.handle = object(), object()
    first.answers, second.answers = {}, {}
    learner.answers["send"], learner.hanging = 3, []
    assert transfer.give([first, second], 3) == {}
    assert said[2:4] == [("learner", "meet"), ("learner", "connect", "bob", "10.0.0.1", 4002, 3)]
    assert verbs(said, "engine 2") == ["prepare", "join", "receive", "announce"]
    # One of them is another process.
    said.clear()
    second.handle = object()
    assert transfer.give([second], 3) == {}
    assert said[2] == ("learner", "connect", "bob", "10.0.0.1", 4001, 2)


def test_nobody_waits_for_an_engine_that_has_died_before(said: list[tuple[Any, ...]]) -> None:
    learner, *engines = parties(said)
    engines[1].answers["prepare"] = Died("engine 2 has died")
    assert list(Transfer("bob", learner, span=1).give(engines, 3)) == ["engine 2"]
    assert said == [("engine 1", "prepare", "bob"), ("engine 2", "prepare", "bob")]


def test_no_engine_uses_weights_that_another_refused(said: list[tuple[Any, ...]]) -> None:
    learner, first, second = parties(said)
    second.answers["receive"] = UserError("the engine refuses")
    failed = Transfer("bob", learner, span=1).give([first, second], 3)
    assert {name: f"{error}" for name, error in failed.items()} == {
        "engine 2": "the engine refuses"
    }
    assert "announce" not in [verb for _, verb, *_ in said]


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        ("meet", Died("learner has died")),
        ("send", Died("learner has died")),
        ("send", UserError("learner failed: no memory")),
    ],
)
def test_a_learner_that_fails_is_not_an_engines_fault(
    said: list[tuple[Any, ...]], verb: str, error: UserError
) -> None:
    learner, *engines = parties(said, **{verb: error})
    failed = Transfer("bob", learner, span=1).give(engines, 3)
    assert {name: f"{failure}" for name, failure in failed.items()} == {
        name: f"the weights could not be sent to {name}: {error}"
        for name in ("engine 1", "engine 2")
    }
    assert not any(isinstance(error, Died) for error in failed.values())


def test_weights_that_are_gone_end_the_run(
    said: list[tuple[Any, ...]],
) -> None:
    """The learner has made another update while an engine was replaced."""
    learner, *engines = parties(said)
    with pytest.raises(UserError, match=r"made update 3, and no process has .* update 2.*--resume"):
        Transfer("bob", learner, span=1).give(engines, 2)
    assert "announce" not in [verb for _, verb, *_ in said]


@pytest.mark.parametrize(
    ("settings", "vllm", "kind"),
    [
        ({"engine_replicas": 2, "tensor_parallel": 2}, TRANSFER, Sender),
        ({"learner_devices": 2}, TRANSFER, Sender),
        # An engine beside its learner, adapters, and who did not ask for it.
        ({}, TRANSFER, EngineWorker),
        ({"engine_replicas": 2, "tuning": "lora"}, TRANSFER, Worker),
        ({"engine_replicas": 2}, VllmSettings(), Worker),
    ],
)
def test_the_weights_of_full_models_with_engines_apart_are_sent(
    settings: dict[str, Any], vllm: VllmSettings, kind: type[Worker]
) -> None:
    agent = AgentSettings("tiny:alice", **settings)
    (base,) = plan_bases(
        {"alice": agent}, {"alice"}, None, Actor, str, vllm=vllm, gpus=True, seed=0, threads=1
    )
    assert base.learner is not None
    assert {process.worker for process in base.learner.processes} == {kind}
    assert (base.transfer is not None) == (kind is Sender)
    if base.transfer is not None:
        assert (base.transfer.learner, base.transfer.span) == (base.learner, agent.tensor_parallel)
        assert {process.worker for process in base.separate_engines} == {EngineWorker}


class Group:
    """Waits for somebody, in place of vLLM's trainer."""

    def __init__(self, ends: bool = True) -> None:
        self.ends, self.given_up, self.sending = ends, threading.Event(), threading.Event()

    def send_weights(self) -> None:
        self.sending.set()
        assert self.given_up.wait(20)
        raise RuntimeError("NCCL error")

    def shutdown(self) -> None:
        if self.ends:
            self.given_up.set()


@pytest.fixture
def learner(monkeypatch: pytest.MonkeyPatch) -> Sender:
    """Of the tiny bob, who has not been loaded."""
    bob = Sender("learner", {}, set(), None, seed=0, threads=1)
    handle = SimpleNamespace(causal_lm=None, dtype=None, version=7)
    bob.models = SimpleNamespace(loaded={"bob": SimpleNamespace(handle=handle)})  # type: ignore[assignment]
    monkeypatch.setattr(sender, "StoredWeights", lambda *_: SimpleNamespace(metadata=list))
    return bob


async def test_a_learner_stops_sending_when_nobody_receives(
    learner: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group()
    monkeypatch.setattr(sender, "open_trainer", lambda *given: group)
    host, port = await learner.meet()
    assert (host, port > 1023) == ("127.0.0.1", True)
    await learner.connect("bob", host, port, 2)
    sending = asyncio.ensure_future(learner.send("bob"))
    await asyncio.to_thread(group.sending.wait, 20)
    monkeypatch.setattr(Worker, "update", lambda self, role, arguments: pickle.loads(arguments))
    # Weights stay as they are until they are sent.
    update = asyncio.ensure_future(learner.update("bob", pickle.dumps("learned")))
    await asyncio.sleep(0.05)
    assert not update.done()
    await learner.abandon()
    with pytest.raises(RuntimeError, match="NCCL"):
        await sending
    assert await update == "learned"
    assert learner._group is None


async def test_a_learner_that_keeps_waiting_is_ended(
    learner: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, ended = Group(ends=False), list[int]()
    monkeypatch.setattr(sender, "open_trainer", lambda *given: group)
    monkeypatch.setattr(sender, "_LET_GO_S", 0.05)
    monkeypatch.setattr(os, "_exit", ended.append)
    await learner.connect("bob", "127.0.0.1", 1, 2)
    sending = asyncio.ensure_future(learner.send("bob"))
    await asyncio.to_thread(group.sending.wait, 20)
    await learner.abandon()
    assert ended == [1]
    group.given_up.set()
    with pytest.raises(RuntimeError, match="NCCL"):
        await sending


@pytest.mark.parametrize(("given", "threads"), [({}, "3"), ({"OMP_NUM_THREADS": "2"}, "2")])
def test_an_engine_of_a_process_takes_its_threads_alone(
    given: dict[str, str], threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.extras.cluster.worker.fix_threads", lambda count: None)
    monkeypatch.setattr(os, "environ", given)
    EngineWorker("engine 1 of bob", {}, set(), None, seed=0, threads=3, vllm=VllmSettings())
    with engine_environment(VllmSettings(), on_gpu=False, transfer=False):
        assert os.environ["OMP_NUM_THREADS"] == threads


def test_an_engine_that_dies_as_it_goes_to_sleep_ends_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that a new process replaces it."""
    worker, ended = EngineWorker.__new__(EngineWorker), Mock()
    worker.backend = Mock(rest=AsyncMock(side_effect=EngineDied("the engine died")))
    monkeypatch.setattr("os._exit", ended)
    asyncio.run(worker.rest())
    ended.assert_called_once_with(1)
