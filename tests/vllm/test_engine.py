"""The contract of trajectories, held by a real engine: the learner's own probabilities."""

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
import torch

from coterie.agents.models.loading import LoadedRole, load_team
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.team.reading import ReadRequest, read_rows
from coterie.agents.vllm.fleet import Fleet, Seat
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import Sampling, Trajectory

pytestmark = pytest.mark.asyncio(loop_scope="module")

SPECS = {
    "alice": ModelSpec("tiny:alice"),
    "bob": ModelSpec("tiny:bob", lora=LoraSpec(rank=4)),
    "carol": ModelSpec("tiny:bob", lora=LoraSpec(rank=12)),
}
Team = tuple[Fleet, dict[str, LoadedRole]]
# Models are in bfloat16 on a GPU.
BOUND = 5e-2 if torch.cuda.is_available() else 1e-4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def team() -> AsyncIterator[Team]:
    """Full weights on one engine, two adapters on another."""
    loaded = load_team(SPECS, set(SPECS))
    seats = [Seat(role, loaded[role], SPECS[role], True, "auto") for role in SPECS]
    fleet = Fleet(seats, VllmSettings())
    await fleet.start()
    yield fleet, loaded
    fleet.close()


@pytest.mark.parametrize("name", list(SPECS))
async def test_probabilities_are_the_learners_before_and_after_an_update(
    team: Team, ask, mismatch, shake, name: str
) -> None:
    fleet, loaded = team
    role, policy = loaded[name], fleet.policies[name]
    await fleet.refresh()
    before = await ask(policy, role, Sampling(32))
    assert mismatch(role, before) < BOUND
    shake(role.handle, size=0.05)
    stale = await ask(policy, role, Sampling(32))
    assert [a.tokens.tolist() for a in stale] == [a.tokens.tolist() for a in before]
    assert {a.weight_version for a in stale} == {0}
    # What an engine that was not refreshed looks like, so that the bound above means something.
    assert mismatch(role, stale) > max(1e-2, BOUND)
    await fleet.refresh()
    fresh = await ask(policy, role, Sampling(32))
    assert mismatch(role, fresh) < BOUND
    assert {a.weight_version for a in fresh} == {1}


async def test_a_seed_names_its_answer(team: Team, ask) -> None:
    fleet, loaded = team
    await fleet.refresh()
    first, again = [
        await ask(fleet.policies["alice"], loaded["alice"], Sampling(32)) for _ in range(2)
    ]
    assert [a.tokens.tolist() for a in first] == [a.tokens.tolist() for a in again]
    assert len({tuple(a.tokens) for a in first}) > 4


async def test_a_stop_string_keeps_the_token_that_completes_it(team: Team, ask) -> None:
    fleet, loaded = team
    await fleet.refresh()
    policy, role = fleet.policies["alice"], loaded["alice"]
    (whole,) = await ask(policy, role, Sampling(40), 1)
    stop = role.codec.decode(whole.tokens)[5:8]
    (cut,) = await ask(policy, role, Sampling(40, stop=(stop,)), 1)
    assert cut.finish_reason == "stop"
    assert stop in role.codec.decode(cut.tokens)
    assert stop not in role.codec.decode(cut.tokens[:-1])
    assert cut.tokens.tolist() == whole.tokens[: len(cut.tokens)].tolist()


async def test_greedy_answers_carry_probabilities_at_temperature_one(
    team: Team, ask, mismatch
) -> None:
    fleet, loaded = team
    await fleet.refresh()
    answers = await ask(fleet.policies["alice"], loaded["alice"], Sampling(24, temperature=0.0))
    assert len({tuple(a.tokens) for a in answers}) == 1
    assert mismatch(loaded["alice"], answers) < BOUND


async def test_a_request_that_is_given_up_leaves_the_engine_alone(
    team: Team, ask, mismatch
) -> None:
    fleet, loaded = team
    await fleet.refresh()
    policy, role = fleet.policies["alice"], loaded["alice"]
    # As hot as the engine allows, and no longer than a step or two of it: nothing is answered yet.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ask(policy, role, Sampling(3000, temperature=2.0)), 0.005)
    assert mismatch(role, await ask(policy, role, Sampling(16))) < BOUND


@pytest.mark.parametrize("likeliest", [0, 64])
async def test_an_engine_reads_like_the_model(team: Team, likeliest: int) -> None:
    fleet, loaded = team
    await fleet.refresh()
    role = loaded["alice"]
    width = role.codec.vocab_size
    rows = [
        Trajectory(
            agent="alice_0",
            role="alice",
            tokens=(tokens := np.random.default_rng(length).integers(3, 200, length)),
            mask=np.arange(length) > 5,
            logprobs=np.zeros(len(tokens), np.float32),
            reward=0.0,
            reward_terms={},
            groups={},
        )
        for length in (9, 30, 2 * role.handle.context)
    ]
    ours = read_rows(role.handle, rows, ReadRequest(1.0, likeliest, width))
    theirs = await fleet.policies["alice"].read(rows, likeliest, width)
    assert ours[2] is theirs[2] is None
    for own, read in zip(ours[:2], theirs[:2]):
        assert own is not None
        assert read is not None
        assert abs(own.logp_N - read.logp_N).max() < BOUND
        if likeliest:
            assert own.logp_NK is not None
            assert read.logp_NK is not None
            assert abs(own.logp_NK - read.logp_NK).max() < BOUND
            assert own.ids_NK is not None
            assert read.ids_NK is not None
            assert (read.ids_NK[:, 0] == own.ids_NK[:, 0]).mean() > 0.9
