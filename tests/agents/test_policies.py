"""Policies in this process."""

import asyncio

import numpy as np
import pytest

from coterie.agents.sampling.policy import LocalPolicy
from coterie.datatypes import PolicyFailure, Prompt, Sampling


@pytest.fixture(scope="module")
def role(load_role):
    return load_role("qwen3", context=32)


def prompt(tokens, seed: int = 1, agent: str = "alice_0") -> Prompt:
    return Prompt(np.array(tokens, dtype=np.int64), "", agent, seed)


async def test_concurrent_calls_are_one_batch_in_any_order(role, monkeypatch) -> None:
    policy = LocalPolicy(role.handle, role.codec)
    sizes = []
    sample = policy.sampler.sample
    monkeypatch.setattr(
        policy.sampler, "sample", lambda rows: sizes.append(len(rows)) or sample(rows)
    )
    asked = [prompt([5, 6, 7 + i % 2], seed=i, agent=f"alice_{i % 3}") for i in range(8)]
    role.handle.version = 3
    settings = Sampling(6)
    forth = await asyncio.gather(*(policy(p, settings) for p in asked))
    back = await asyncio.gather(*(policy(p, settings) for p in reversed(asked)))
    assert sizes == [8, 8]
    for a, b in zip(forth, reversed(back), strict=True):
        assert a.tokens.tolist() == b.tokens.tolist()
        assert a.logprobs.tolist() == b.logprobs.tolist()
        assert a.weight_version == 3
    assert len({tuple(c.tokens) for c in forth}) == 8


async def test_what_cannot_be_answered_is_a_failure(role) -> None:
    policy = LocalPolicy(role.handle, role.codec)
    for tokens, match in (
        ([], "the prompt is empty"),
        ([5] * 32, "the prompt has 32 tokens and the context 32"),
        ([5, 320], "beyond the model's vocabulary"),
        ([5, -1], "beyond the model's vocabulary"),
    ):
        with pytest.raises(PolicyFailure, match=match):
            await policy(prompt(tokens), Sampling(4))
    with pytest.raises(PolicyFailure, match="no new token"):
        await policy(prompt([5]), Sampling(0))
    # Three tokens of room: the answer is cut there.
    out = await policy(prompt([5] * 29, seed=2), Sampling(10))
    assert len(out.tokens) == 3
    assert out.finish_reason == "length"
