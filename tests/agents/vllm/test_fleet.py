"""Which roles share an engine, what it is started with, and what it answers."""

import asyncio
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from coterie.agents.models.loading import load_team
from coterie.agents.models.locate import TINY
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.sampling.policy import LocalPolicy
from coterie.agents.vllm.fleet import Fleet, Seat
from coterie.agents.vllm.policy import VllmPolicy
from coterie.agents.vllm.settings import VllmSettings
from coterie.agents.vllm.spec import engine_arguments
from coterie.datatypes import Completion, PolicyFailure, Prompt, Sampling, UserError
from miniatures.shapes import build

LORA = LoraSpec(rank=4)


BOTH = {"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob")}


def seats(specs: dict[str, ModelSpec], frozen: tuple[str, ...], device: str = "auto") -> list[Seat]:
    loaded = load_team(specs, set(specs) - set(frozen))
    return [Seat(role, loaded[role], specs[role], role not in frozen, device) for role in specs]


@pytest.fixture
def fleet_of(file_engine):
    """Starts engines that read files, and closes them."""
    fleets: list[Fleet] = []

    async def start(
        specs: dict[str, ModelSpec], frozen: tuple[str, ...] = (), device: str = "auto", **settings
    ) -> tuple[Fleet, dict[str, Seat]]:
        placed = seats(specs, frozen, device)
        fleets.append(Fleet(placed, VllmSettings(**settings)))
        await fleets[0].start()
        return fleets[0], {seat.role: seat for seat in placed}

    yield start
    for fleet in fleets:
        fleet.close()


@pytest.fixture
async def alice(fleet_of) -> tuple[VllmPolicy, Seat]:
    """A policy with full weights that are published, and its seat."""
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice", context=64)})
    await fleet.refresh()
    return fleet.policies["alice"], placed["alice"]


def prompts(seat: Seat, count: int = 4) -> list[Prompt]:
    ids = np.array(seat.loaded.codec.open("7 + 8 - 3 ="))
    return [Prompt(ids, "", f"alice_{i}", 100 + i) for i in range(count)]


async def answers(policy, asked: list[Prompt], sampling: Sampling) -> list[Completion]:
    return list(await asyncio.gather(*(policy(prompt, sampling) for prompt in asked)))


async def same_answers(fleet: Fleet, seat: Seat) -> tuple[list[Completion], list[Completion]]:
    """The answers of the model here and of its engine, which have the same tokens."""
    asked, loaded = prompts(seat), seat.loaded
    there = await answers(fleet.policies[seat.role], asked, Sampling(8))
    here = await answers(LocalPolicy(loaded.handle, loaded.codec), asked, Sampling(8))
    assert [c.tokens.tolist() for c in there] == [c.tokens.tolist() for c in here]
    return here, there


def folders() -> set[Path]:
    """For engines of this process."""
    places = Path("/dev/shm"), Path(tempfile.gettempdir())
    return {folder for place in places for folder in place.glob(f"coterie-{os.getpid()}-*")}


async def test_full_weights_have_an_engine_each_and_adapters_share_one(
    fleet_of, file_engine
) -> None:
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
    fleet_of, file_engine, shake, tmp_path: Path
) -> None:
    folder = str(build("mistralai/Ministral-3-3B-Reasoning-2512", tmp_path, heads=32))
    specs = {"alice": ModelSpec(folder, lora=LORA), "bob": ModelSpec(folder)}
    fleet, placed = await fleet_of(specs, frozen=("bob",))
    (engine,) = file_engine.started
    own = json.loads((Path(engine.spec.model) / "config.json").read_text())
    assert own["model_type"] == "ministral3"
    assert engine.spec.tokenizer == folder
    shake(placed["alice"].loaded.handle)
    await fleet.refresh()
    await same_answers(fleet, placed["alice"])


async def test_the_engine_of_a_quantized_base_has_its_values_in_full(
    fleet_of, file_engine, shake, write_shaped, tmp_path: Path
) -> None:
    pytest.importorskip("bitsandbytes", reason="not run: bitsandbytes is not installed")
    # Heads of 16 are too narrow for an engine on a CPU, so the copy is widened too.
    shape = {"hidden_size": 64, "intermediate_size": 128}
    folder = str(write_shaped(tmp_path / "model", "qwen2", spread=0.1, **shape))
    specs = {
        "alice": ModelSpec(folder, dtype="nf4", lora=LORA),
        "bob": ModelSpec(folder, dtype="nf4"),
    }
    fleet, placed = await fleet_of(specs, frozen=("bob",))
    (engine,) = file_engine.started
    assert engine.spec.dtype == "float32"
    shake(placed["alice"].loaded.handle)
    await fleet.refresh()
    here, there = await same_answers(fleet, placed["alice"])
    for ours, theirs in zip(here, there):
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, atol=1e-3)


@pytest.mark.parametrize("lora", [None, LORA])
async def test_the_engine_answers_like_this_process_before_and_after_an_update(
    fleet_of, shake, lora: LoraSpec | None
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
        shake(seat.loaded.handle, size=0.05)
    # Until it is told, an engine goes on with the weights it has, and says so.
    stale = await answers(policy, prompts(seat), sampling)
    assert {completion.weight_version for completion in stale} == {1}
    assert [s.tokens.tolist() for s in stale] == [t.tokens.tolist() for t in theirs]


async def test_nothing_is_published_where_nothing_changed(fleet_of, file_engine, shake) -> None:
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice")})
    for _ in range(3):
        await fleet.refresh()
    assert file_engine.started[0].reloads == 1
    shake(placed["alice"].loaded.handle)
    await fleet.refresh()
    assert file_engine.started[0].reloads == 2


@pytest.mark.parametrize("lora", [None, LORA])
async def test_a_frozen_role_keeps_no_weights_in_this_process(fleet_of, lora) -> None:
    specs = {"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob", lora=lora)}
    fleet, placed = await fleet_of(specs, frozen=("bob",))
    assert placed["bob"].loaded.handle.device.type == "meta"
    assert placed["alice"].loaded.handle.device.type == "cpu"
    await fleet.refresh()
    (answer,) = await answers(fleet.policies["bob"], prompts(placed["bob"], 1), Sampling(8))
    assert answer.tokens.size


async def test_a_stop_string_ends_with_the_token_that_completes_it(alice) -> None:
    policy, seat = alice
    codec, asked = seat.loaded.codec, prompts(seat, 1)
    (whole,) = await answers(policy, asked, Sampling(40))
    stop = codec.decode(whole.tokens)[6:9]
    (cut,) = await answers(policy, asked, Sampling(40, stop=(stop,)))
    assert cut.finish_reason == "stop"
    assert cut.tokens.tolist() == whole.tokens[: len(cut.tokens)].tolist()
    assert len(cut.logprobs) == len(cut.tokens)
    assert stop in codec.decode(cut.tokens)
    assert stop not in codec.decode(cut.tokens[:-1])
    # An engine that does not stop is cut in the same place.
    policy.engine = Deaf(policy.engine)
    (again,) = await answers(policy, asked, Sampling(40, stop=(stop,)))
    assert again.tokens.tolist() == cut.tokens.tolist()
    assert again.finish_reason == "stop"


class Deaf:
    """An engine that does not look for stop strings."""

    def __init__(self, engine) -> None:
        self._engine = engine

    async def generate(self, tokens, params, adapter):
        params = {**params, "sampling": Sampling(40)}
        return await self._engine.generate(tokens, params, adapter)


async def test_filtered_sampling_cannot_tell_unfiltered_probabilities(alice) -> None:
    policy, seat = alice
    for more, filtered in (
        ({"top_p": 0.5}, True),
        ({"top_k": 3}, True),
        ({"temperature": 0.0, "top_p": 0.5}, False),
    ):
        (completion,) = await answers(policy, prompts(seat, 1), Sampling(8, **more))
        assert (np.isnan(completion.logprobs) == filtered).all()


async def test_an_invalid_prompt_is_a_failure(alice) -> None:
    policy, seat = alice
    for tokens, reason in [([], "empty"), ([10_000], "vocabulary"), ([5] * 64, "context 64")]:
        with pytest.raises(PolicyFailure, match=reason):
            await policy(Prompt(np.array(tokens, np.int64), "", "a_0", 1), Sampling(8))
    (completion,) = await answers(policy, prompts(seat, 1), Sampling(999))
    assert len(completion.tokens) < 64


async def test_an_aborted_request_is_a_failure(alice, file_engine, monkeypatch) -> None:
    policy, seat = alice

    async def gave_up(*_):
        return SimpleNamespace(token_ids=[5], logprobs=[{}], finish_reason="abort")

    monkeypatch.setattr(file_engine, "generate", gave_up)
    with pytest.raises(PolicyFailure, match="aborted the request"):
        await policy(prompts(seat, 1)[0], Sampling(8))


async def test_an_engine_that_does_not_start_leaves_nothing_behind(
    fleet_of, file_engine, monkeypatch
) -> None:
    def refuses(self) -> None:
        raise UserError("no")

    monkeypatch.setattr(file_engine, "start", refuses)
    before = folders()
    with pytest.raises(UserError, match="no"):
        await fleet_of(BOTH)
    assert all(engine.closed for engine in file_engine.started)
    assert folders() <= before


async def test_a_model_that_cannot_be_brought_into_form_says_so_and_leaves_nothing_behind(
    fleet_of, monkeypatch
) -> None:
    """The hub's models cannot be widened, and the tiny ones are too narrow."""
    monkeypatch.setattr("coterie.agents.vllm.fleet.local_folder", lambda spec: None)
    before = folders()
    with pytest.raises(UserError, match="name a local folder"):
        await fleet_of(BOTH, frozen=("bob",))
    assert folders() <= before


async def test_engines_that_take_turns_are_awake_when_weights_come(
    fleet_of, file_engine, shake, monkeypatch
) -> None:
    """A GPU's memory that an engine gave up cannot be written to."""
    awake: dict[object, bool] = {}
    seen: list[bool] = []

    def recorded(name: str):
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
        monkeypatch.setattr(file_engine, name, recorded(name))
    monkeypatch.setattr(file_engine, "sleep", state(False))
    monkeypatch.setattr(file_engine, "wake", state(True))
    specs = {"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob", lora=LORA)}
    fleet, placed = await fleet_of(specs, time_share=True, sleep_level=1)
    awake |= dict.fromkeys(file_engine.started, True)
    for _ in range(2):
        await fleet.refresh()
        for role, seat in placed.items():
            await answers(fleet.policies[role], prompts(seat, 1), Sampling(2))
            assert sum(awake.values()) == 1
        await fleet.rest()
        assert not any(awake.values())
        for seat in placed.values():
            shake(seat.loaded.handle)
    # Twice each: weights, then a request.
    assert seen == [True] * 8


async def test_on_a_gpu_engines_that_take_turns_start_one_after_another_asleep(
    fleet_of, file_engine, monkeypatch
) -> None:
    """Two that need most of it each never fit side by side."""
    said: list[tuple[str, int]] = []

    def note(name: str):
        return lambda self: said.append((name, file_engine.started.index(self)))

    async def sleep(self) -> None:
        note("sleep")(self)

    monkeypatch.setattr(file_engine, "start", note("start"))
    monkeypatch.setattr(file_engine, "sleep", sleep)
    await fleet_of(BOTH, device="cuda:0", time_share=True, sleep_level=1)
    assert all(engine.spec.on_gpu for engine in file_engine.started)
    assert said == [("start", 0), ("sleep", 0), ("start", 1), ("sleep", 1)]


async def test_numbers_of_adapters_are_never_used_twice(fleet_of, file_engine, shake) -> None:
    lora = ModelSpec("tiny:bob", lora=LORA)
    fleet, placed = await fleet_of({"alice": lora, "bob": lora})
    for _ in range(3):
        await fleet.refresh()
        for seat in placed.values():
            shake(seat.loaded.handle)
    assert sorted(file_engine.started[0]._adapters) == [5, 6]


def test_vllm_gets_the_number_of_an_engines_gpus() -> None:
    (seat,) = seats({"alice": ModelSpec("tiny:alice")}, frozen=("alice",))
    fleet = Fleet([replace(seat, tensor_parallel=2)], VllmSettings())
    (spec,) = fleet.specs
    fleet.close()
    assert engine_arguments(spec, VllmSettings())["tensor_parallel_size"] == 2
