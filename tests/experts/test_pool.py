"""Several experts behind one role, and models with other vocabularies."""

import numpy as np
import pytest

from experts import ExpertPool, ScriptedPolicy, ScriptedSettings, TranslatedPolicy
from vocabulary import Completion, PolicyFailure, Sampling, UserError

LIMITS = Sampling(max_new_tokens=64)


def useless(text, codec):
    return ScriptedPolicy(ScriptedSettings(kind="useless", useless_text=text), codec)


async def test_seats_are_filled_in_order(ask, codec):
    pool = ExpertPool({"small": useless("s", codec), "large": useless("l", codec)})
    said = [codec.decode((await pool(ask(agent=f"expert_{i}"), LIMITS)).tokens) for i in range(5)]
    assert said == ["s", "l", "s", "l", "s"]
    assert {name: counters.answered for name, counters in pool.counters.items()} == {
        "small": 3,
        "large": 2,
    }
    assert pool.as_dict()["large/reply_tokens"] == 2


async def test_each_expert_counts_its_own_failures(ask, codec):
    silent = ScriptedPolicy(ScriptedSettings(kind="silent"), codec)
    pool = ExpertPool({"good": useless("g", codec), "silent": silent})
    await pool(ask(agent="expert_0"), LIMITS)
    for _ in range(2):
        with pytest.raises(PolicyFailure):
            await pool(ask(agent="expert_1"), LIMITS)
    flat = pool.as_dict()
    assert (flat["good/calls"], flat["good/failed"]) == (1, 0)
    assert (flat["silent/calls"], flat["silent/failed/silent"]) == (2, 2)
    assert pool.counters["silent"].failures == {"expert is silent": 2}


async def test_pool_closes_its_servers(server, policy, ask, codec):
    expert = policy()
    pool = ExpertPool({"server": expert, "script": useless("x", codec)})
    await pool(ask(agent="expert_0"), LIMITS)
    assert pool.as_dict()["server/server_prompt_tokens"] == 11
    await pool.aclose()
    await pool(ask(agent="expert_0"), LIMITS)
    assert server.connections == 2


def test_wrong_pools(codec):
    with pytest.raises(UserError, match="at least one"):
        ExpertPool({})
    pool = ExpertPool({"a": useless("a", codec)})
    for agent in ("expert", "expert_", "expert_x", "expert_-1", ""):
        with pytest.raises(UserError, match="seat number"):
            pool.expert_at(agent)


class Shifted:
    """Bytes plus 1: another vocabulary for the same text."""

    vocab_size = 257

    def open(self, message):
        return [1 + byte for byte in message.encode()]

    def decode(self, tokens):
        return bytes(int(t) - 1 for t in tokens).decode("utf-8", "replace")


async def test_translation_between_vocabularies(ask, codec):
    seen = []

    async def echo(prompt, sampling):
        seen.append(prompt)
        tokens = prompt.tokens[::-1].copy()
        return Completion(tokens, np.zeros(len(tokens), np.float32), "stop", weight_version=3)

    expert = TranslatedPolicy(echo, inner=Shifted(), outer=codec)
    completion = await expert(ask("abc", seed=5), LIMITS)
    assert seen[0].tokens.tolist() == [98, 99, 100]
    assert (seen[0].text, seen[0].seed, seen[0].agent) == ("abc", 5, "expert_0")
    assert codec.decode(completion.tokens) == "cba"
    assert (completion.finish_reason, completion.weight_version) == ("stop", 3)
    assert np.isnan(completion.logprobs).all()
