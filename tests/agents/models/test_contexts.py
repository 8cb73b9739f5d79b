"""Two layouts of keys and values: the same log-probabilities from both."""

import numpy as np
import pytest
import torch

from coterie.agents.models.loading import LoadedRole
from coterie.agents.sampling import Sampler, SamplingRequest, contexts
from coterie.agents.sampling.contexts import RowContexts, SharedContexts
from coterie.datatypes import Sampling


@pytest.fixture(params=["qwen3", "llama", "phi3"])
def role(request: pytest.FixtureRequest, load_role) -> LoadedRole:
    return load_role(request.param)


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the layouts that were taken."""
    taken: list[str] = []
    for layout in (RowContexts, SharedContexts):
        made = layout.__init__

        def init(self, *args, made=made, **kwargs):
            taken.append(type(self).__name__)
            made(self, *args, **kwargs)

        monkeypatch.setattr(layout, "__init__", init)
    return taken


def requests(eos: bool) -> list[SamplingRequest]:
    """Prompts of 24, 31 and 17 tokens with 5, 4 and 3 rows in mixed order, of several lengths."""
    rng = np.random.default_rng(0)
    prompts = [rng.integers(2, 300, size=n) for n in (24, 31, 17)]
    order = [0, 1, 2, 0, 0, 1, 1, 2, 0, 1, 2, 0]
    return [
        SamplingRequest(prompts[which], seed, Sampling(5 + 4 * (seed % 5) if eos else 20))
        for seed, which in enumerate(order)
    ]


@pytest.mark.parametrize("ends", [False, True], ids=["together", "one by one"])
def test_shared_prompts_give_the_same_log_probabilities(
    role: LoadedRole,
    layouts: list[str],
    without_ties: None,
    near,
    monkeypatch: pytest.MonkeyPatch,
    ends: bool,
) -> None:
    sampled = []
    for least in (1 << 60, 0):
        monkeypatch.setattr(contexts, "_SHARED_BYTES", least)
        sampled.append(Sampler(role.handle, role.codec.decode, ()).sample(requests(ends)))
    assert layouts == ["RowContexts", "SharedContexts"]
    for ours, theirs in zip(*sampled, strict=True):
        assert ours.tokens.tolist() == theirs.tokens.tolist()
        near(ours.logprobs, theirs.logprobs)


def test_prompts_are_held_once_where_that_saves_memory_and_rows_fill_their_places(
    role: LoadedRole, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Sampler(role.handle, role.codec.decode, ())
    weights = sampler._decoder()._w  # type: ignore[attr-defined]

    def layout(fork: list[int], least: int) -> type:
        monkeypatch.setattr(contexts, "_SHARED_BYTES", least)
        prompts = [[7] * 40 for _ in range(max(fork) + 1)]
        return type(contexts.contexts(weights, prompts, fork, 4))

    assert layout([0] * 8 + [1] * 8, 0) is SharedContexts
    # 14 rows that share a start of 40 tokens, keys and values of every layer in float32.
    per_token = 2 * 4 * len(weights.layers) * weights.kv_heads * weights.width
    assert layout([0] * 8 + [1] * 8, 14 * 40 * per_token) is SharedContexts
    assert layout([0] * 8 + [1] * 8, 14 * 40 * per_token + 1) is RowContexts
    # One prompt of 9 rows, nine of one: 90 places for 18 rows.
    assert layout([0] * 9 + list(range(1, 10)), 0) is RowContexts


def test_windows_keep_whole_rows(load_role, monkeypatch: pytest.MonkeyPatch) -> None:
    role = load_role("mistral")
    weights = Sampler(role.handle, role.codec.decode, ())._decoder()._w  # type: ignore[attr-defined]
    monkeypatch.setattr(contexts, "_SHARED_BYTES", 0)
    made = contexts.contexts(weights, [[5] * 8], [0] * 4, 4)
    assert isinstance(made, RowContexts)
    assert torch.equal(made.pad_B, torch.zeros(4, dtype=torch.long))
