"""Weights on their way to an engine: new names, old ones dropped when drained."""

import itertools
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from coterie.agents.models.spec import LoraSpec
from coterie.agents.vllm.weight_updates import AdapterVersions, EngineCheckpoints, FullWeights


class Engine:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.adapters: dict[int, Path] = {}
        self.folders: list[Path] = []
        self.handed: list[tuple[str, torch.Tensor]] = []

    async def add_adapter(self, adapter) -> None:
        assert (adapter.path / "adapter_model.safetensors").is_file()
        assert adapter.number not in self.adapters
        self.adapters[adapter.number] = adapter.path

    async def drop_adapter(self, adapter) -> None:
        del self.adapters[adapter.number]

    async def reload(self, folder: Path) -> None:
        assert (folder / "model.safetensors").is_file()
        self.folders.append(folder)

    async def transfer(self, weights) -> None:
        self.handed = list(weights)


@pytest.fixture
def adapter(load_role, tmp_path: Path):
    handle = load_role("qwen3", lora=LoraSpec(rank=4)).handle
    engine = Engine()
    versions = AdapterVersions(engine, handle, tmp_path, "alice", itertools.count(1), width=None)
    return engine, handle, versions


async def test_each_version_has_its_own_name_number_and_folder(adapter, shake) -> None:
    engine, handle, versions = adapter
    await versions.publish()
    async with versions.request() as first:
        pass
    shake(handle)
    await versions.publish()
    async with versions.request() as second:
        pass
    assert (first.name, second.name) == ("alice-v1", "alice-v2")
    assert first.path != second.path
    # The first is drained, so it is gone, from the engine and from memory.
    assert list(engine.adapters) == [2]
    assert not first.path.exists()
    assert second.path.exists()


async def test_a_version_stays_while_a_request_names_it(adapter) -> None:
    engine, _, versions = adapter
    await versions.publish()
    async with versions.request() as old:
        await versions.publish()
        assert set(engine.adapters) == {1, 2}
        assert old.path.exists()
        async with versions.request() as new:
            assert new.number == 2
    assert set(engine.adapters) == {2}
    assert not old.path.exists()


async def test_full_weights_are_written_anew_and_the_old_ones_go(
    load_role, shake, tmp_path: Path
) -> None:
    handle = load_role("qwen3").handle
    engine = Engine()
    writer = EngineCheckpoints(handle, tmp_path, width=32, untie=True)
    first = writer.write()
    shake(handle)
    await FullWeights(engine, writer, transfer=False).publish()
    assert not first.exists()
    tensors = load_file(engine.folders[0] / "model.safetensors")
    now = handle.causal_lm.get_input_embeddings().weight
    # The trap: a tied head that stays as it was.
    assert torch.equal(tensors["lm_head.weight"], now)
    assert torch.equal(tensors["model.embed_tokens.weight"], now)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
async def test_a_transfer_sends_what_a_checkpoint_holds(
    checkpoint, load_role, tmp_path: Path, dtype: torch.dtype | None
) -> None:
    handle = load_role("qwen3-moe").handle
    engine = Engine()
    writer = EngineCheckpoints(handle, tmp_path, width=None, untie=False, dtype=dtype)
    await FullWeights(engine, writer, transfer=True).publish()
    stored = load_file(checkpoint("qwen3-moe") / "model.safetensors")
    assert {name for name, _ in engine.handed} == set(stored)
    for name, tensor in engine.handed:
        assert torch.equal(stored[name].to(dtype or torch.float32), tensor)
    assert not list(tmp_path.iterdir())
