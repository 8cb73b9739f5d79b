"""The next turn of a conversation is read from the end of the last answer on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from coterie.agents.models.spec import LoraSpec
from coterie.agents.sampling import Sampler, SamplingRequest, contexts, fused, sample
from coterie.agents.sampling.kept import KeptContext, KeptContexts
from coterie.datatypes import Completion, Sampling

from .test_agreement import NAMES, ragged_rows, reference, worst_gap

SUFFIXES = ([7, 30], [8], [9, 4, 11], [12, 5])


def first_turn() -> list[SamplingRequest]:
    """Rows of prompts of similar length, so that a quarter of all tokens can be saved."""
    return [replace(row, continues=True) for row in ragged_rows() if len(row.tokens) > 6]


def next_turn(rows: Sequence[SamplingRequest], outs: Sequence[Completion]) -> list[SamplingRequest]:
    """Each answer with a few tokens behind it; answers of different length end at another time."""
    return [
        SamplingRequest(
            np.concatenate([row.tokens, out.tokens, SUFFIXES[i % len(SUFFIXES)]]),
            row.seed + 1000,
            Sampling(3 + i),
            continues=True,
        )
        for i, (row, out) in enumerate(zip(rows, outs))
    ]


@pytest.mark.parametrize("layout", ["rows", "shared"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "gemma2"])
def test_logprobs_are_those_of_the_whole_context(
    load_role, shake, monkeypatch, resumed: list[int], name: str, layout: str
) -> None:
    if layout == "shared":
        monkeypatch.setattr(contexts, "_SHARED_BYTES", 0)
    # A row at a time has to be read: a chunk holds fewer tokens than one row has.
    monkeypatch.setattr(fused, "_PREFILL_TOKENS", 2)
    role = load_role(name, lora=LoraSpec(rank=4))
    shake(role.handle, size=0.2, only="lora_B")
    sampler = Sampler(role.handle, role.codec.decode, ())
    rows = first_turn()
    outs = sampler.sample(rows)
    for _ in range(2):
        rows = next_turn(rows, outs)
        outs = sampler.sample(rows)
        gaps = [np.abs(reference(role, r, o) - o.logprobs).max() for r, o in zip(rows, outs)]
        assert max(gaps) < 1e-3
    assert resumed == [len(rows)] * 2


def test_new_weights_read_everything_again(load_role, shake, resumed: list[int]) -> None:
    role = load_role("qwen2")
    sampler = Sampler(role.handle, role.codec.decode, ())
    rows = first_turn()
    outs = sampler.sample(rows)
    shake(role.handle, size=0.05)
    assert worst_gap(role, sampler, next_turn(rows, outs)) < 1e-3
    sampler.release()
    assert worst_gap(role, sampler, next_turn(rows, outs)) < 1e-3
    assert resumed == []


@pytest.mark.parametrize("continues", [False, True])
def test_nothing_is_kept_of_tiny_models_nor_of_last_turns(
    load_role, monkeypatch, resumed: list[int], continues: bool
) -> None:
    if continues:
        monkeypatch.setattr(sample, "KEEPS_FROM", 1 << 28)
    role = load_role("qwen2")
    sampler = Sampler(role.handle, role.codec.decode, ())
    rows = [replace(row, continues=continues) for row in first_turn()]
    sampler.sample(next_turn(rows, sampler.sample(rows)))
    assert resumed == []


def of_length(size: int) -> KeptContext:
    return KeptContext(torch.zeros(1, 1, 2, size), torch.zeros(1, 1, size, 2))


def ids(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int64)


def test_what_finds_no_room_is_read_whole(load_role, resumed: list[int]) -> None:
    role = load_role("qwen2", lora=LoraSpec(rank=4))
    sampler = Sampler(role.handle, role.codec.decode, ())
    rows = first_turn()
    sampler._kept = KeptContexts(limit=1)
    outs = sampler.sample(rows)
    assert worst_gap(role, sampler, next_turn(rows, outs)) < 1e-3
    assert resumed == []
    sampler._kept = KeptContexts(limit=20_000)
    assert sampler.sample(rows)
    assert 0 < len(sampler._kept._kept) < len(rows)
    assert worst_gap(role, sampler, next_turn(rows, outs)) < 1e-3
    assert 0 < sum(resumed) < len(rows)


def test_a_context_is_taken_where_most_is_saved() -> None:
    kept = KeptContexts()

    def taken(*prompts: np.ndarray) -> list[int] | None:
        for size in (2, 4):
            kept.add(ids(*range(size)), of_length(size))
        found = kept.take(prompts)
        return None if found is None else [len(context) for context in found]

    assert taken(ids(0, 1, 2, 3, 9)) == [4]
    assert taken(ids(0, 1, 2, 3)) == [2], "the newest token has to be read"
    assert taken(ids(0, 1, 2, 3, 9), ids(5, 6)) is None, "a prompt that continues none"
    assert taken(ids(0, 1, *[9] * 7)) is None, "more to read than to save"
    several = [ids(0, 1, 2, 3, 9)] * 4
    assert taken(*several) is None, "one prompt is read once for all of its rows"


def test_there_is_room_again_for_what_was_taken() -> None:
    kept = KeptContexts(limit=2 * of_length(4).nbytes)
    for first in (10, 20, 30):
        kept.add(ids(first, 1, 2, 3), of_length(4))
    nexts = [ids(first, 1, 2, 3, 4) for first in (10, 20, 30)]
    assert [key is not None for key in kept.continued_by(nexts)] == [True, True, False]
    assert kept.take(nexts[:1]) is not None
    kept.add(ids(30, 1, 2, 3), of_length(4))
    assert [key is not None for key in kept.continued_by(nexts)] == [False, True, True]
