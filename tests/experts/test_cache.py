"""Replies by exact request on disk."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from coterie.datatypes import Completion, PolicyFailure, Sampling, UserError
from coterie.experts import CachedPolicy, ScriptedSettings, ServerSettings, build_expert

LIMITS = Sampling(max_new_tokens=64, stop=("END",))


class Counting:
    """Answers each call with its number; every third log-probability is unknown."""

    def __init__(self):
        self.calls = 0

    async def __call__(self, prompt, sampling):
        self.calls += 1
        tokens = np.arange(5, dtype=np.int64) + 2**40 + self.calls
        logprobs = np.array([-0.1, -1e-30, np.nan, -3.4e38, 0.0], dtype=np.float32)
        return Completion(tokens, logprobs, "stop", weight_version=4, usage=(11, 5))


def cached(folder, inner, **identity):
    return CachedPolicy(inner, folder, identity={"model": "m"} | identity)


def entries(folder):
    return sorted(folder.glob("??/*.json"))


async def test_a_reply_comes_back_bit_for_bit(tmp_path, ask):
    inner = Counting()
    first = await cached(tmp_path / "new" / "folder", inner)(ask(), LIMITS)
    again = cached(tmp_path / "new" / "folder", inner)
    second = await again(ask(), LIMITS)
    assert inner.calls == 1
    assert second.tokens.tolist() == first.tokens.tolist()
    assert second.logprobs.tobytes() == first.logprobs.tobytes()
    assert (second.tokens.dtype, second.logprobs.dtype) == (np.int64, np.float32)
    assert (second.finish_reason, second.weight_version) == ("stop", 4)
    assert second.usage == (11, 5)
    counts = {"hits": 1, "misses": 0, "corrupt": 0, "not_written": 0}
    assert again.as_dict() == {f"cache/{name}": count for name, count in counts.items()}


async def test_everything_that_matters_is_in_the_key(tmp_path, ask, four):
    inner = Counting()
    policy = cached(tmp_path, inner)
    base = ask("q", seed=1)
    asked = [
        (base, LIMITS),
        (ask("q ", seed=1), LIMITS),
        (ask("q", seed=2), LIMITS),
        (replace(base, tokens=base.tokens + 1), LIMITS),
        (replace(base, problem=four), LIMITS),
        (base, replace(LIMITS, max_new_tokens=65)),
        (base, replace(LIMITS, temperature=0.5)),
        (base, replace(LIMITS, top_p=0.5)),
        (base, replace(LIMITS, top_k=5)),
        (base, replace(LIMITS, stop=())),
    ]
    for prompt, sampling in asked:
        await policy(prompt, sampling)
    assert inner.calls == len(asked)
    await cached(tmp_path, inner, model="other")(base, LIMITS)
    assert inner.calls == len(asked) + 1
    for prompt, sampling in asked:
        await policy(prompt, sampling)
    # Who asks does not matter: the seed already names the row.
    await policy(ask("q", seed=1, agent="expert_9"), LIMITS)
    assert inner.calls == len(asked) + 1
    assert policy.counters.hits == len(asked) + 1
    assert len(entries(tmp_path)) == len(asked) + 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b'{"completion": {}}',
        lambda data: b'{"completion": {}, "request": 3, "sha256": "x"}',
        lambda data: data.replace(b'"tokens": [1', b'"tokens": [2'),
        lambda data: data.replace(b'"text": "2', b'"text": "3'),
    ],
)
async def test_a_spoilt_entry_is_asked_for_again_and_mended(tmp_path, ask, spoil):
    inner = Counting()
    await cached(tmp_path, inner)(ask(), LIMITS)
    [path] = entries(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(spoil(whole))
    assert path.read_bytes() != whole
    policy = cached(tmp_path, inner)
    await policy(ask(), LIMITS)
    assert (inner.calls, policy.counters.corrupt) == (2, 1)
    await policy(ask(), LIMITS)
    assert (inner.calls, policy.counters.hits) == (2, 1)


async def test_a_full_disk_costs_the_entry_not_the_reply(tmp_path, ask, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    policy = cached(tmp_path, Counting())
    assert len((await policy(ask(), LIMITS)).tokens) == 5
    assert policy.counters.not_written == 1
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


async def test_failures_are_not_kept(tmp_path, ask, codec):
    silent = build_expert(ScriptedSettings(kind="silent"), codec)
    policy = cached(tmp_path, silent)
    for _ in range(2):
        with pytest.raises(PolicyFailure):
            await policy(ask(), LIMITS)
    assert silent.counters.calls == 2
    assert entries(tmp_path) == []


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="cache_dir"):
        cached(tmp_path / "file", Counting())


async def test_built_from_settings(tmp_path, server, ask, codec):
    settings = ServerSettings(base_url=server.url, model="m", cache_dir=str(tmp_path))
    with pytest.raises(UserError, match="codec"):
        build_expert(settings, codec)
    for _ in range(2):
        expert = build_expert(settings, codec, codec_name="utf-8")
        assert codec.decode((await expert(ask(), LIMITS)).tokens) == "Answer: 4"
        await expert.aclose()
    assert len(server.requests) == 1
    other = build_expert(replace(settings, model="n"), codec, codec_name="utf-8")
    await other(ask(), LIMITS)
    await other.aclose()
    assert len(server.requests) == 2
    for text in (path.read_text() for path in entries(tmp_path)):
        assert json.loads(text)["request"]["text"] == "2 + 2 = ?"
