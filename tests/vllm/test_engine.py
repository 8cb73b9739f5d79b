"""The contract of trajectories, held by a real engine: the learner's own probabilities."""

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
import torch

from coterie.agents.engine.fleet import Fleet, Seat
from coterie.agents.engine.policy import VllmPolicy
from coterie.agents.engine.settings import VllmSettings
from coterie.datatypes import Completion, Prompt, Sampling
from coterie.models.loading import LoadedRole, load_team
from coterie.models.spec import LoraSpec, ModelSpec

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


async def ask(
    policy: VllmPolicy, role: LoadedRole, sampling: Sampling, count: int = 16
) -> list[Completion]:
    ids = np.array(role.codec.open("7 + 8 - 3 ="))
    prompts = [Prompt(ids, "", f"a_{i}", 100 + i) for i in range(count)]
    return list(await asyncio.gather(*(policy(prompt, sampling) for prompt in prompts)))


def mismatch(role: LoadedRole, answers: list[Completion]) -> float:
    """Mean |engine's log-probability - the learner's|."""
    prompt = role.codec.open("7 + 8 - 3 =")
    gaps = []
    for answer in answers:
        ids = torch.tensor([prompt + answer.tokens.tolist()], device=role.handle.device)
        with torch.no_grad(), role.handle.active():
            positions = torch.arange(ids.shape[1], device=ids.device)[None]
            hidden = role.handle.backbone(ids, torch.ones_like(ids), positions)
            logp = role.handle.head(hidden)[0, len(prompt) - 1 : -1].float().log_softmax(-1)
        own = logp.gather(1, ids[0, len(prompt) :, None])[:, 0].cpu().numpy()
        gaps.append(np.abs(own - answer.logprobs))
    return float(np.concatenate(gaps).mean())


@pytest.mark.parametrize("name", list(SPECS))
async def test_probabilities_are_the_learners_before_and_after_an_update(
    team: Team, name: str
) -> None:
    fleet, loaded = team
    role, policy = loaded[name], fleet.policies[name]
    await fleet.refresh()
    before = await ask(policy, role, Sampling(32))
    assert mismatch(role, before) < BOUND
    with torch.no_grad():
        for parameter in role.handle.parameters().values():
            parameter += 0.05 * torch.randn_like(parameter)
    role.handle.version += 1
    stale = await ask(policy, role, Sampling(32))
    assert [a.tokens.tolist() for a in stale] == [a.tokens.tolist() for a in before]
    assert {a.weight_version for a in stale} == {0}
    # What an engine that was not refreshed looks like, so that the bound above means something.
    assert mismatch(role, stale) > max(1e-2, BOUND)
    await fleet.refresh()
    fresh = await ask(policy, role, Sampling(32))
    assert mismatch(role, fresh) < BOUND
    assert {a.weight_version for a in fresh} == {1}


async def test_a_seed_names_its_answer(team: Team) -> None:
    fleet, loaded = team
    await fleet.refresh()
    first, again = [
        await ask(fleet.policies["alice"], loaded["alice"], Sampling(32)) for _ in range(2)
    ]
    assert [a.tokens.tolist() for a in first] == [a.tokens.tolist() for a in again]
    assert len({tuple(a.tokens) for a in first}) > 4


async def test_a_stop_string_keeps_the_token_that_completes_it(team: Team) -> None:
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


async def test_greedy_answers_carry_probabilities_at_temperature_one(team: Team) -> None:
    fleet, loaded = team
    await fleet.refresh()
    answers = await ask(fleet.policies["alice"], loaded["alice"], Sampling(24, temperature=0.0))
    assert len({tuple(a.tokens) for a in answers}) == 1
    assert mismatch(loaded["alice"], answers) < BOUND


async def test_a_request_that_is_given_up_leaves_the_engine_alone(team: Team) -> None:
    fleet, loaded = team
    await fleet.refresh()
    policy, role = fleet.policies["alice"], loaded["alice"]
    # As hot as the engine allows, and no longer than a step or two of it: nothing is answered yet.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ask(policy, role, Sampling(3000, temperature=2.0)), 0.005)
    assert mismatch(role, await ask(policy, role, Sampling(16))) < BOUND
