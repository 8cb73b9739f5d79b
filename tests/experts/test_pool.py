"""Several experts behind one role, and models with other vocabularies."""

import numpy as np
import pytest

from coterie.datatypes import Completion, PolicyFailure, Sampling, UserError
from coterie.experts import ExpertPool, ScriptedPolicy, ScriptedSettings, TranslatedPolicy
from coterie.rollouts import play

LIMITS = Sampling(max_new_tokens=64)


def useless(text, codec):
    return ScriptedPolicy(ScriptedSettings(kind="useless", useless_text=text), codec)


async def test_seats_are_filled_in_order(ask, codec):
    pool = ExpertPool({"small": useless("s", codec), "large": useless("l", codec)})
    said = [codec.decode((await pool(ask(agent=f"expert_{i}"), LIMITS)).tokens) for i in range(5)]
    assert said == ["s", "l", "s", "l", "s"]
    flat = pool.as_dict()
    assert (flat["small/answered"], flat["large/answered"]) == (3, 2)


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
        # Four bytes count as a token.
        assert sampling.max_new_tokens == 16
        tokens = prompt.tokens[::-1].copy()
        return Completion(
            tokens, np.zeros(len(tokens), np.float32), "stop", weight_version=3, usage=(7, 8)
        )

    expert = TranslatedPolicy(echo, inner=Shifted(), outer=codec)
    completion = await expert(ask("abc", seed=5), LIMITS)
    assert seen[0].tokens.tolist() == [98, 99, 100]
    assert (seen[0].text, seen[0].seed, seen[0].agent) == ("abc", 5, "expert_0")
    assert codec.decode(completion.tokens) == "cba"
    assert (completion.finish_reason, completion.weight_version) == ("stop", 3)
    assert completion.usage == (7, 8)
    assert np.isnan(completion.logprobs).all()


class OneTurn:
    """Asks ``expert_0`` and ``expert_1`` once and notes who answered."""

    def __init__(self):
        self.agents = []
        self.answered = []

    def reset(self, seed=None, options=None):
        self.agents = ["expert_0", "expert_1"]
        tokens = np.frombuffer(b"2 + 2 = ?", dtype=np.uint8).astype(np.int64)
        return {a: {"tokens": tokens, "active": 1} for a in self.agents}, {
            a: {"max_new_tokens": 64} for a in self.agents
        }

    def step(self, actions):
        self.answered = sorted(actions)
        agents, self.agents = self.agents, []
        nothing = dict.fromkeys(agents, False)
        return {}, dict.fromkeys(agents, 1.0), nothing, nothing, {}


async def test_a_failed_expert_is_data_in_a_rollout(server, policy, codec, four):
    server.script = [server.sends(b"<html>", content_type="text/html")]
    pool = ExpertPool({"server": policy(retries=0), "script": useless("x", codec)})
    env = OneTurn()
    episode = await play(env, {"expert": pool}, seed=3, options={"problem": four}, sampling=LIMITS)
    assert env.answered == ["expert_1"]
    failed, answered = episode.trajectories
    assert (failed.status, failed.trainable) == ("failed: server sent a web page", False)
    assert (answered.status, answered.tokens[answered.mask].tolist()) == ("ok", [ord("x")])
    # No text in the infos: the server was asked the decoded context.
    assert server.requests[0].json["messages"][0]["content"] == "2 + 2 = ?"
