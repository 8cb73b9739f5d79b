"""In which format weights come to an engine, and which way."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from coterie.agents.models.loading import load_team
from coterie.agents.models.locate import TINY
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.vllm.fleet import Fleet, Seat, transfer_of
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import UserError

LORA = LoraSpec(rank=4)


def placed_on(device: str, dtype: str = "auto", lora: LoraSpec | None = None) -> Seat:
    """The tiny alice, who learns, with an engine that is elsewhere than she."""
    spec = ModelSpec("tiny:alice", dtype=dtype, lora=lora)  # type: ignore[arg-type]
    loaded = load_team({"alice": spec}, {"alice"})
    return Seat("alice", loaded["alice"], spec, True, device)


def test_adapters_of_32_bits_are_refused_on_a_gpu(file_engine) -> None:
    with pytest.raises(UserError, match=r"--agents\.alice\.dtype bfloat16"):
        Fleet([placed_on("cuda:0", lora=LORA)], VllmSettings())


@pytest.mark.parametrize(
    ("device", "dtype", "wanted"),
    [
        ("cuda:0", "auto", torch.bfloat16),
        # Whoever asks for 32 bits gets them everywhere.
        ("cuda:0", "float32", torch.float32),
        ("cpu", "auto", torch.float32),
    ],
)
def test_engines_get_copies_in_the_format_that_their_device_computes_in(
    file_engine, device: str, dtype: str, wanted: torch.dtype
) -> None:
    """What learns is held in 32 bits; nobody samples from it there."""
    seat = placed_on(device, dtype)
    fleet = Fleet([seat], VllmSettings(weights="reload"))
    spec = file_engine.started[0].spec
    assert (spec.dtype, fleet.dtype_of("alice")) == (str(wanted).removeprefix("torch."), wanted)
    written = load_file(Path(spec.model) / "model.safetensors")
    in_memory = {
        name: p for name, p in seat.loaded.handle.module.state_dict().items() if name in written
    }
    assert {tensor.dtype for tensor in written.values()} == {wanted}
    assert {tensor.dtype for tensor in in_memory.values()} == {torch.float32}
    # On a CPU, heads are widened.
    same = [name for name in written if written[name].shape == in_memory[name].shape]
    assert len(same) > len(written) // 2
    assert all(torch.equal(written[name], in_memory[name].to(wanted)) for name in same)
    fleet.close()


@pytest.mark.parametrize(
    "has",
    [
        {"use_dora": True},
        {"lora_bias": True},
        {"rank_pattern": {"q_proj": 4}},
        {"alpha_pattern": {"q_proj": 64}},
    ],
)
def test_adapters_that_engines_cannot_read_are_refused(file_engine, has) -> None:
    seat = placed_on("auto", lora=LORA)
    handle = seat.loaded.handle
    for name, value in has.items():
        setattr(handle.module.peft_config[handle.adapter], name, value)  # type: ignore[index]
    with pytest.raises(UserError, match="plain LoRA adapters"):
        Fleet([seat], VllmSettings())


def test_weights_by_transfer_are_not_written(file_engine, monkeypatch) -> None:
    """The engine starts from the model's own files, and is handed newer weights at once."""
    monkeypatch.setattr("coterie.agents.vllm.fleet.transfer_of", lambda seat, settings: "ipc")
    fleet = Fleet([placed_on("cuda:0")], VllmSettings())
    assert file_engine.started[0].spec.model == str(TINY / "alice")
    fleet.close()


async def test_weights_from_another_gpu_pass_through_no_file_and_no_main_memory(
    file_engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat = replace(placed_on("cuda:0"), apart=True, tensor_parallel=2)
    fleet = Fleet([seat], VllmSettings(weights="transfer"))
    (spec,) = fleet.specs
    assert (spec.model, spec.dtype, spec.transfer) == (str(TINY / "alice"), "bfloat16", "nccl")
    assert seat.loaded.handle.device.type == "meta"
    calls: list[str] = []
    monkeypatch.setattr(file_engine, "start", lambda self: None)
    for verb in ("reload", "transfer"):
        monkeypatch.setattr(file_engine, verb, calls.append, raising=False)
    await fleet.start()
    # Their version is told; nothing is published from here.
    seat.loaded.handle.version = 5
    await fleet.refresh()
    assert (fleet.policies["alice"].version, calls) == (5, [])
    fleet.close()


@pytest.mark.parametrize(
    ("settings", "device", "wanted"),
    [
        (VllmSettings(), "auto", "ipc"),
        # The model's own device, by its name.
        (VllmSettings(), "cuda:0", "ipc"),
        (VllmSettings(), "cuda:1", None),
        (VllmSettings(weights="transfer"), "auto", "ipc"),
        (VllmSettings(), "cpu", None),
        (VllmSettings(weights="reload"), "auto", None),
        (VllmSettings(sleep_level=1), "auto", "ipc"),
        # Weights that were given up are read from files again, so files have to be the newest.
        (VllmSettings(sleep_level=2), "auto", None),
    ],
)
def test_tensors_are_handed_over_on_one_gpu_that_keeps_them(
    settings: VllmSettings, device: str, wanted: str | None
) -> None:
    loaded = SimpleNamespace(handle=SimpleNamespace(device=torch.device("cuda:0")))
    seat = Seat("alice", loaded, ModelSpec("tiny:alice"), True, device)  # type: ignore[arg-type]
    assert transfer_of(seat, settings) == wanted
    # What is sent from elsewhere is on no GPU of this process.
    apart = replace(seat, apart=True, tensor_parallel=2)
    assert transfer_of(apart, settings) == ("nccl" if settings.weights == "transfer" else None)
