"""What is told to an engine, and what becomes of it; vLLM's client is a stand-in."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from coterie.agents.vllm.engine import Adapter, Engine
from coterie.agents.vllm.settings import VllmSettings
from coterie.agents.vllm.spec import EngineSpec, engine_arguments
from coterie.agents.vllm.transfer import describe
from coterie.datatypes import UserError

HUB = EngineSpec("org/model", "org/model", "bfloat16", "cuda:0", 64, revision="abc")


class Client:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.errored = False
        self.calls: list[tuple[str, Any]] = []
        self.busy = 0

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> bool:
            self.calls.append((name, kwargs.get("kwargs", kwargs) or args))
            return True

        return call

    async def reset_prefix_cache(self) -> bool:
        self.busy -= 1
        return self.busy < 0


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr("coterie.agents.vllm.engine._LOOK_S", 0.01)
    monkeypatch.setattr("coterie.agents.vllm.engine._request", lambda adapter: adapter.name)
    return Client()


def engine_of(client: Client, **settings: Any) -> Engine:
    engine = Engine(HUB, VllmSettings(**settings))
    engine._llm = client
    return engine


async def test_an_engine_that_dies_meanwhile_is_reported(client: Client, monkeypatch) -> None:
    """vLLM never answers a call that its engine died under."""

    async def never(_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(client, "add_lora", never, raising=False)
    waiting = asyncio.ensure_future(engine_of(client).add_adapter(Adapter("a", 1, Path("a"))))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    client.errored = True
    with pytest.raises(UserError, match=r"the engine of org/model died .*--resume"):
        await waiting


async def test_a_refusal_is_one_sentence(client: Client, monkeypatch) -> None:
    async def refuses(*_: Any, **__: Any) -> None:
        raise ValueError("no such tensor\nTraceback ...")

    monkeypatch.setattr(client, "collective_rpc", refuses, raising=False)
    with pytest.raises(UserError, match=r"refuses: ValueError no such tensor; --vllm\.log INFO"):
        await engine_of(client).reload(Path("v2"))


async def test_prefixes_are_forgotten_once_no_request_uses_them(
    client: Client, monkeypatch
) -> None:
    client.busy = 2
    await engine_of(client).forget_prefixes()
    assert client.busy == -1
    monkeypatch.setattr("coterie.agents.vllm.engine._FORGET_TRIES", 2)
    client.busy = 10
    with pytest.raises(UserError, match="did not finish abandoned requests"):
        await engine_of(client).forget_prefixes()


async def test_discarded_weights_are_read_from_the_newest_folder(
    client: Client,
) -> None:
    """A path in place of the name would lose the revision."""
    engine = engine_of(client, sleep_level=2)
    await engine.sleep()
    await engine.wake()
    await engine.reload(Path("v2"))
    await engine.sleep()
    await engine.wake()
    read = [kwargs for name, kwargs in client.calls if name == "collective_rpc"]
    assert read == [("reload_weights",), {"weights_path": "v2"}, {"weights_path": "v2"}]


async def test_adapters_are_handed_over_again_after_sleep(client: Client) -> None:
    engine = engine_of(client, sleep_level=1)
    await engine.add_adapter(Adapter("a-v1", 1, Path("a")))
    client.calls.clear()
    await engine.sleep()
    await engine.wake()
    assert [name for name, _ in client.calls] == [
        *("sleep", "wake_up", "remove_lora", "add_lora", "wake_up")
    ]


async def test_the_calls_for_weights_that_another_gpu_sends(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = SimpleNamespace(
        WeightTransferInitRequest=lambda info: ("init", info),
        WeightTransferUpdateRequest=lambda info: ("update", info),
    )
    monkeypatch.setitem(sys.modules, "vllm.distributed.weight_transfer.base", requests)
    engine = engine_of(client)
    await engine.join({"master_port": 4001, "rank_offset": 3, "world_size": 5})
    # One of 2 x 3 numbers and one of 3.
    sent = [("a.weight", torch.zeros(2, 3, dtype=torch.bfloat16)), ("b", torch.zeros(3))]
    await engine.receive(describe(sent))
    meeting = {"master_port": 4001, "rank_offset": 3, "world_size": 5, "packed": True}
    described = {
        "names": ["a.weight", "b"],
        "dtype_names": ["bfloat16", "float32"],
        "shapes": [[2, 3], [3]],
    }
    assert client.calls == [
        ("shutdown_weight_transfer_engine", ()),
        ("init_weight_transfer_engine", (("init", meeting),)),
        ("start_weight_update", ()),
        ("update_weights", (("update", described),)),
        ("finish_weight_update", ()),
    ]
    assert client.busy == -1  # what was cached is forgotten


@pytest.mark.parametrize("backend", ["ipc", "nccl"])
def test_vllm_gets_the_backend_of_the_weight_transfer(
    monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    config = SimpleNamespace(WeightTransferConfig=lambda backend: f"by {backend}")
    monkeypatch.setitem(sys.modules, "vllm.config", config)
    arguments = engine_arguments(replace(HUB, transfer=backend), VllmSettings())
    assert arguments["weight_transfer_config"] == f"by {backend}"


def test_a_build_for_another_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    build = SimpleNamespace(
        AsyncEngineArgs=None, AsyncLLM=None, current_platform=SimpleNamespace(device_type="cpu")
    )
    for name in ("", ".engine", ".engine.arg_utils", ".platforms", ".v1", ".v1.engine"):
        monkeypatch.setitem(sys.modules, f"vllm{name}", build)
    monkeypatch.setitem(sys.modules, "vllm.v1.engine.async_llm", build)
    with pytest.raises(UserError, match="runs on cpu, and org/model is to run on cuda:0"):
        Engine(HUB, VllmSettings()).start()
