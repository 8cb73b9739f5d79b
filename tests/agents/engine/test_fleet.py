"""Which roles share an engine, what it is started with, and what it answers."""

import asyncio
import itertools
import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from coterie.agents.engine.fleet import Fleet, Seat
from coterie.agents.engine.settings import VllmSettings
from coterie.agents.engine.spec import engine_arguments
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


def folders() -> set[Path]:
    """For engines of this process."""
    places = Path("/dev/shm"), Path(tempfile.gettempdir())
    return {folder for place in places for folder in place.glob(f"coterie-{os.getpid()}-*")}


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
    assert [completion.tokens.tolist() for completion in there] == [
        completion.tokens.tolist() for completion in here
    ]
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
    assert {completion.weight_version for completion in stale} == {1}
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
        (completion,) = await answers(
            fleet.policies["alice"], prompts(placed["alice"], 1), sampling
        )
        assert np.isnan(completion.logprobs).all()
    greedy = Sampling(8, temperature=0.0, top_p=0.5)
    (completion,) = await answers(fleet.policies["alice"], prompts(placed["alice"], 1), greedy)
    assert np.isfinite(completion.logprobs).all()
    fleet.close()


async def test_what_cannot_be_asked_is_a_failure(file_engine) -> None:
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice", context=64)})
    await fleet.refresh()
    policy = fleet.policies["alice"]
    for tokens, reason in [([], "empty"), ([10_000], "vocabulary"), ([5] * 64, "context 64")]:
        with pytest.raises(PolicyFailure, match=reason):
            await policy(Prompt(np.array(tokens, np.int64), "", "a_0", 1), Sampling(8))
    (completion,) = await answers(policy, prompts(placed["alice"], 1), Sampling(999))
    assert len(completion.tokens) < 64
    fleet.close()


async def test_an_aborted_request_is_a_failure(file_engine, monkeypatch) -> None:
    fleet, placed = await fleet_of({"alice": ModelSpec("tiny:alice")})
    await fleet.refresh()

    async def gave_up(*_):
        return SimpleNamespace(token_ids=[5], logprobs=[{}], finish_reason="abort")

    monkeypatch.setattr(file_engine, "generate", gave_up)
    with pytest.raises(PolicyFailure, match="aborted the request"):
        await fleet.policies["alice"](prompts(placed["alice"], 1)[0], Sampling(8))
    fleet.close()


async def test_an_engine_that_does_not_start_leaves_nothing_behind(
    file_engine, monkeypatch
) -> None:
    def refuses(self) -> None:
        raise UserError("no")

    monkeypatch.setattr(file_engine, "start", refuses)
    before = folders()
    with pytest.raises(UserError, match="no"):
        await fleet_of({"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob")})
    assert all(engine.closed for engine in file_engine.started)
    assert folders() <= before


async def test_a_model_that_cannot_be_brought_into_form_says_so_and_leaves_nothing_behind(
    file_engine, monkeypatch
) -> None:
    """The hub's models cannot be widened, and the tiny ones are too narrow."""
    monkeypatch.setattr("coterie.agents.engine.fleet.local_folder", lambda spec: None)
    before = folders()
    with pytest.raises(UserError, match="name a local folder"):
        await fleet_of(
            {"alice": ModelSpec("tiny:alice"), "bob": ModelSpec("tiny:bob")}, frozen=("bob",)
        )
    assert folders() <= before


async def test_engines_that_take_turns_are_awake_when_weights_come(
    file_engine, monkeypatch
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


def test_vllm_gets_the_number_of_an_engines_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = {"alice": ModelSpec("tiny:alice")}
    loaded = load_team(specs, set())
    seat = Seat("alice", loaded["alice"], specs["alice"], False, "auto", tensor_parallel=2)
    fleet = Fleet([seat], VllmSettings())
    (spec,) = fleet.specs
    fleet.close()
    assert engine_arguments(spec, VllmSettings())["tensor_parallel_size"] == 2
