"""Which roles share an engine, what it is started with, and what it answers."""

import asyncio
import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from coterie.agents.engine.fleet import Fleet, Seat, transfer_of
from coterie.agents.engine.settings import VllmSettings
from coterie.agents.engine.spec import engine_arguments
from coterie.agents.engine.versions import CheckpointWriter
from coterie.agents.local import LocalPolicy
from coterie.datatypes import Completion, PolicyFailure, Prompt, Sampling, UserError
from coterie.models.loading import load_team
from coterie.models.locate import TINY
from coterie.models.spec import LoraSpec, ModelSpec
from miniatures.shapes import build

LORA = LoraSpec(rank=4)


def seats(specs: dict[str, ModelSpec], frozen: tuple[str, ...] = ()) -> list[Seat]:
    loaded = load_team(specs, set(specs) - set(frozen))
    return [Seat(r, loaded[r], specs[r], r not in frozen, "auto") for r in specs]


async def fleet_of(specs: dict[str, ModelSpec], **kwargs) -> tuple[Fleet, dict[str, Seat]]:
    placed = seats(specs, **kwargs)
    fleet = Fleet(placed, VllmSettings())
    await fleet.start()
    return fleet, {seat.role: seat for seat in placed}


def prompts(seat: Seat, count: int = 4) -> list[Prompt]:
    ids = np.array(seat.loaded.codec.open("7 + 8 - 3 ="))
    return [Prompt(ids, "", f"alice_{i}", 100 + i) for i in range(count)]


async def answers(policy, asked: list[Prompt], sampling: Sampling) -> list[Completion]:
    return list(await asyncio.gather(*(policy(prompt, sampling) for prompt in asked)))


def change(seat: Seat) -> None:
    handle = seat.loaded.handle
    with torch.no_grad():
        for p in handle.parameters().values():
            p += 0.05 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1))
    handle.version += 1


async def test_full_weights_have_an_engine_each_and_adapters_share_one(file_engine) -> None:
    specs = {
        "alice": ModelSpec("tiny:alice"),
        "bob": ModelSpec("tiny:bob", lora=LORA),
        "carol": ModelSpec("tiny:bob", lora=LoraSpec(rank=12)),
        "dave": ModelSpec("tiny:bob"),
    }
    fleet, _ = await fleet_of(specs, frozen=("dave",))
    alice, base = (engine.spec for engine in file_engine.started)
    assert (alice.lora_rank, alice.adapters) == (0, 0)
    assert (base.lora_rank, base.adapters) == (12, 2)
    assert base.tokenizer == str(TINY / "bob")
    folder = Path(alice.model).parents[1]
    assert folder.is_dir()
    fleet.close()
    assert all(engine.closed for engine in file_engine.started)
    assert not folder.exists()


async def test_the_text_of_a_model_that_also_sees_is_what_its_engine_is_given(
    file_engine, tmp_path: Path
) -> None:
    folder = str(build("mistralai/Ministral-3-3B-Reasoning-2512", tmp_path, heads=32))
    specs = {"alice": ModelSpec(folder, lora=LORA), "bob": ModelSpec(folder)}
    fleet, placed = await fleet_of(specs, frozen=("bob",))
    (engine,) = file_engine.started
    own = json.loads((Path(engine.spec.model) / "config.json").read_text())
    assert own["model_type"] == "ministral3"
    assert engine.spec.tokenizer == folder
    change(placed["alice"])
    await fleet.refresh()
    handle, codec = placed["alice"].loaded.handle, placed["alice"].loaded.codec
    asked = prompts(placed["alice"])
    there = await answers(fleet.policies["alice"], asked, Sampling(8))
    here = await answers(LocalPolicy(handle, codec), asked, Sampling(8))
    assert [one.tokens.tolist() for one in there] == [one.tokens.tolist() for one in here]
    fleet.close()


@pytest.mark.parametrize("lora", [None, LORA])
async def test_the_engine_answers_like_this_process_before_and_after_an_update(
    file_engine, lora: LoraSpec | None
) -> None:
    """The stand-in knows files only, so what it says shows what was written."""
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice", lora=lora)})
    seat, policy = placed["alice"], fleet.policies["alice"]
    here = LocalPolicy(seat.loaded.handle, seat.loaded.codec)
    sampling = Sampling(24)
    theirs: list[Completion] = []
    for version in range(2):
        await fleet.refresh()
        theirs = await answers(policy, prompts(seat), sampling)
        ours = await answers(here, prompts(seat), sampling)
        for a, b in zip(theirs, ours, strict=True):
            assert a.tokens.tolist() == b.tokens.tolist()
            assert np.allclose(a.logprobs, b.logprobs, atol=1e-4)
            assert (a.finish_reason, a.weight_version) == (b.finish_reason, version)
        change(seat)
    # Until it is told, an engine goes on with the weights it has, and says so.
    stale = await answers(policy, prompts(seat), sampling)
    assert {one.weight_version for one in stale} == {1}
    assert [s.tokens.tolist() for s in stale] == [t.tokens.tolist() for t in theirs]
    fleet.close()


async def test_nothing_is_published_where_nothing_changed(file_engine) -> None:
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice")})
    for _ in range(3):
        await fleet.refresh()
    assert file_engine.started[0].reloads == 1
    change(placed["alice"])
    await fleet.refresh()
    assert file_engine.started[0].reloads == 2
    fleet.close()


async def test_a_frozen_role_keeps_no_weights_in_this_process(file_engine) -> None:
    specs = {"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob")}
    fleet, placed = await fleet_of(specs, frozen=("bob",))
    assert placed["bob"].loaded.handle.device.type == "meta"
    assert placed["alice"].loaded.handle.device.type == "cpu"
    await fleet.refresh()
    assert (await answers(fleet.policies["bob"], prompts(placed["bob"]), Sampling(8)))[
        0
    ].tokens.size
    fleet.close()


async def test_a_stop_string_ends_with_the_token_that_completes_it(file_engine) -> None:
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice")})
    await fleet.refresh()
    policy, codec = fleet.policies["alice"], placed["alice"].loaded.codec
    (whole,) = await answers(policy, prompts(placed["alice"], 1), Sampling(40))
    text = codec.decode(whole.tokens)
    stop = text[6:9]
    (cut,) = await answers(policy, prompts(placed["alice"], 1), Sampling(40, stop=(stop,)))
    assert cut.finish_reason == "stop"
    assert cut.tokens.tolist() == whole.tokens[: len(cut.tokens)].tolist()
    assert len(cut.logprobs) == len(cut.tokens)
    assert stop in codec.decode(cut.tokens)
    assert stop not in codec.decode(cut.tokens[:-1])
    # An engine that does not stop is cut in the same place.
    policy.engine = Deaf(policy.engine)
    (again,) = await answers(policy, prompts(placed["alice"], 1), Sampling(40, stop=(stop,)))
    assert again.tokens.tolist() == cut.tokens.tolist()
    assert again.finish_reason == "stop"
    fleet.close()


class Deaf:
    """An engine that does not look for stop strings."""

    def __init__(self, engine) -> None:
        self._engine = engine

    async def generate(self, tokens, params, adapter):
        params = {**params, "sampling": Sampling(40)}
        return await self._engine.generate(tokens, params, adapter)


async def test_filtered_sampling_cannot_tell_unfiltered_probabilities(file_engine) -> None:
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice")})
    await fleet.refresh()
    for sampling in (Sampling(8, top_p=0.5), Sampling(8, top_k=3)):
        (one,) = await answers(fleet.policies["alice"], prompts(placed["alice"], 1), sampling)
        assert np.isnan(one.logprobs).all()
    greedy = Sampling(8, temperature=0.0, top_p=0.5)
    (one,) = await answers(fleet.policies["alice"], prompts(placed["alice"], 1), greedy)
    assert np.isfinite(one.logprobs).all()
    fleet.close()


async def test_what_cannot_be_asked_is_a_failure(file_engine) -> None:
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice", context=64)})
    await fleet.refresh()
    policy = fleet.policies["alice"]
    for tokens, reason in [([], "empty"), ([10_000], "vocabulary"), ([5] * 64, "context 64")]:
        with pytest.raises(PolicyFailure, match=reason):
            await policy(Prompt(np.array(tokens, np.int64), "", "a_0", 1), Sampling(8))
    (one,) = await answers(policy, prompts(placed["alice"], 1), Sampling(999))
    assert len(one.tokens) < 64
    fleet.close()


async def test_an_aborted_request_is_a_failure(file_engine, monkeypatch) -> None:
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice")})
    await fleet.refresh()

    async def gave_up(*_):
        return SimpleNamespace(token_ids=[5], logprobs=[{}], finish_reason="abort")

    monkeypatch.setattr(file_engine, "generate", gave_up)
    with pytest.raises(PolicyFailure, match="gave the request up"):
        await fleet.policies["alice"](prompts(placed["alice"], 1)[0], Sampling(8))
    fleet.close()


async def test_an_engine_that_does_not_start_leaves_nothing_behind(
    file_engine, monkeypatch
) -> None:
    def refuses(self) -> None:
        raise UserError("no")

    monkeypatch.setattr(file_engine, "start", refuses)
    before = set(Path("/dev/shm").glob("coterie-*")) if _has_shm() else set()
    with pytest.raises(UserError, match="no"):
        await fleet_of({"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob")})
    assert all(engine.closed for engine in file_engine.started)
    if _has_shm():
        assert set(Path("/dev/shm").glob("coterie-*")) <= before


async def test_a_model_that_cannot_be_brought_into_form_says_so_and_leaves_nothing_behind(
    file_engine, monkeypatch
) -> None:
    """The hub's models cannot be widened, and the tiny ones are too narrow."""
    monkeypatch.setattr("coterie.agents.engine.fleet.local_folder", lambda spec: None)
    before = set(Path("/dev/shm").glob("coterie-*")) if _has_shm() else set()
    with pytest.raises(UserError, match="name a local folder"):
        await fleet_of(
            {"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob")}, frozen=("bob",)
        )
    if _has_shm():
        assert set(Path("/dev/shm").glob("coterie-*")) <= before


async def test_engines_that_take_turns_are_awake_when_weights_come(
    file_engine, monkeypatch
) -> None:
    """A GPU's memory that an engine gave up cannot be written to."""
    awake: dict[object, bool] = {}
    seen: list[bool] = []

    def told(name: str):
        really = getattr(file_engine, name)

        async def call(self, *args):
            seen.append(awake[self])
            return await really(self, *args)

        return call

    def state(value: bool):
        async def change(self) -> None:
            awake[self] = value

        return change

    for name in ("reload", "add_adapter", "generate"):
        monkeypatch.setattr(file_engine, name, told(name))
    monkeypatch.setattr(file_engine, "sleep", state(False))
    monkeypatch.setattr(file_engine, "wake", state(True))
    specs = {"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob", lora=LORA)}
    placed = seats(specs)
    fleet = Fleet(placed, VllmSettings(time_share=True, sleep_level=1))
    await fleet.start()
    awake |= dict.fromkeys(file_engine.started, True)
    for _ in range(2):
        await fleet.refresh()
        for seat in placed:
            await answers(fleet.policies[seat.role], prompts(seat, 1), Sampling(2))
            assert sum(awake.values()) == 1
        await fleet.rest()
        assert not any(awake.values())
        for seat in placed:
            change(seat)
    # Twice each: weights, then a request.
    assert seen == [True] * 8
    fleet.close()


async def test_on_a_gpu_engines_that_take_turns_start_one_after_another_asleep(
    file_engine, monkeypatch
) -> None:
    """Two that need most of it each never fit side by side."""
    said: list[tuple[str, int]] = []

    def note(name: str):
        return lambda self: said.append((name, file_engine.started.index(self)))

    async def sleep(self) -> None:
        note("sleep")(self)

    monkeypatch.setattr(file_engine, "start", note("start"))
    monkeypatch.setattr(file_engine, "sleep", sleep)
    monkeypatch.setattr(file_engine, "close", lambda self: None)
    specs = {"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob")}
    loaded = load_team(specs, set(specs))
    placed = [Seat(role, loaded[role], specs[role], True, "cuda:0") for role in specs]
    fleet = Fleet(placed, VllmSettings(time_share=True, sleep_level=1))
    assert all(engine.spec.on_gpu for engine in file_engine.started)
    await fleet.start()
    assert said == [("start", 0), ("sleep", 0), ("start", 1), ("sleep", 1)]
    fleet.close()


async def test_adapters_of_32_bits_are_refused_on_a_gpu(file_engine) -> None:
    spec = ModelSpec("tiny:alice", lora=LORA)
    loaded = load_team({"alice": spec}, {"alice"})
    with pytest.raises(UserError, match=r"--agents\.alice\.dtype bfloat16"):
        Fleet([Seat("alice", loaded["alice"], spec, True, "cuda:0")], VllmSettings())


def placed_on(device: str, dtype: str, *, trained: bool = True) -> Seat:
    """Full weights of the tiny alice, whose engine is elsewhere than they are."""
    spec = ModelSpec("tiny:alice", dtype=dtype)  # type: ignore[arg-type]
    loaded = load_team({"alice": spec}, {"alice"} if trained else set())
    return Seat("alice", loaded["alice"], spec, trained, device)


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
    held = {
        name: p for name, p in seat.loaded.handle.module.state_dict().items() if name in written
    }
    assert {one.dtype for one in written.values()} == {wanted}
    assert {one.dtype for one in held.values()} == {torch.float32}
    # On a CPU, heads are widened.
    same = [name for name in written if written[name].shape == held[name].shape]
    assert len(same) > len(written) // 2
    assert all(torch.equal(written[name], held[name].to(wanted)) for name in same)
    fleet.close()


def test_weights_by_transfer_are_copies_in_16_bits_too(tmp_path: Path) -> None:
    handle = placed_on("cuda:0", "auto").loaded.handle
    wide = CheckpointWriter(handle, tmp_path, width=None, untie=False).tensors()
    narrow = CheckpointWriter(handle, tmp_path, width=None, untie=False, dtype=torch.bfloat16)
    assert {tensor.dtype for _, tensor in wide} == {torch.float32}
    for (name, held), (same, sent) in zip(wide, narrow.tensors(), strict=True):
        assert name == same
        assert torch.equal(sent, held.to(torch.bfloat16))


@pytest.mark.parametrize(
    "has", [{"use_dora": True}, {"bias": "all"}, {"modules_to_save": ["lm_head"]}]
)
def test_adapters_that_engines_cannot_read_are_refused(file_engine, has) -> None:
    spec = ModelSpec("tiny:alice", lora=LORA)
    loaded = load_team({"alice": spec}, {"alice"})
    handle = loaded["alice"].handle
    for name, value in has.items():
        setattr(handle.module.peft_config[handle.adapter], name, value)  # type: ignore[index]
    with pytest.raises(UserError, match="plain LoRA adapters"):
        Fleet([Seat("alice", loaded["alice"], spec, True, "auto")], VllmSettings())


def test_weights_by_transfer_are_not_written(file_engine, monkeypatch) -> None:
    """The engine starts from the model's own files, and is handed newer weights at once."""
    monkeypatch.setattr("coterie.agents.engine.fleet.transfer_of", lambda seat, settings: "ipc")
    specs = {"alice": ModelSpec("tiny:alice")}
    loaded = load_team(specs, {"alice"})
    fleet = Fleet([Seat("alice", loaded["alice"], specs["alice"], True, "cuda:0")], VllmSettings())
    assert file_engine.started[0].spec.model == str(TINY / "alice")
    fleet.close()


async def test_weights_from_another_gpu_pass_through_no_file_and_no_main_memory(
    file_engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat = replace(placed_on("cuda:0", "auto"), apart=True, tensor_parallel=2)
    fleet = Fleet([seat], VllmSettings(weights="transfer"))
    (spec,) = fleet.specs
    assert (spec.model, spec.dtype, spec.transfer) == (str(TINY / "alice"), "bfloat16", "nccl")
    assert seat.loaded.handle.device.type == "meta"
    told: list[str] = []
    monkeypatch.setattr(file_engine, "start", lambda self: None)
    for verb in ("reload", "transfer"):
        monkeypatch.setattr(file_engine, verb, told.append, raising=False)
    await fleet.start()
    # Their version is told; nothing is published from here.
    seat.loaded.handle.version = 5
    await fleet.refresh()
    assert (fleet.policies["alice"].version, told) == (5, [])
    fleet.close()


def _has_shm() -> bool:
    return Path("/dev/shm").is_dir()


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
    handle = SimpleNamespace(device=torch.device("cuda:0"))
    loaded = SimpleNamespace(handle=handle)
    seat = Seat("alice", loaded, ModelSpec("tiny:alice"), True, device)  # type: ignore[arg-type]
    assert transfer_of(seat, settings) == wanted
    # What is sent from elsewhere is on no GPU of this process.
    apart = replace(seat, apart=True, tensor_parallel=2)
    assert transfer_of(apart, settings) == ("nccl" if settings.weights == "transfer" else None)


async def test_numbers_of_adapters_are_never_used_twice(file_engine) -> None:
    specs = {
        "alice": ModelSpec("tiny:bob", lora=LORA),
        "bob": ModelSpec("tiny:bob", lora=LORA),
    }
    fleet, placed = await fleet_of(specs)

    async def go() -> None:
        for _ in range(3):
            await fleet.refresh()
            for seat in placed.values():
                change(seat)

    await go()
    assert sorted(file_engine.started[0]._adapters) == [5, 6]
    assert list(itertools.islice(fleet._benches[next(iter(fleet._benches))].numbers, 1)) == [7]
    fleet.close()


def test_vllm_is_told_how_many_gpus_an_engine_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = {"alice": ModelSpec("tiny:alice")}
    loaded = load_team(specs, set())
    seat = Seat("alice", loaded["alice"], specs["alice"], False, "auto", tensor_parallel=2)
    fleet = Fleet([seat], VllmSettings())
    (spec,) = fleet.specs
    fleet.close()
    assert engine_arguments(spec, VllmSettings())["tensor_parallel_size"] == 2
