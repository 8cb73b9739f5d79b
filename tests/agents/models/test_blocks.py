"""Float32 weights that compute in bfloat16, part by part."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from coterie.agents.models.blocks import compute_in, parts
from coterie.agents.models.spec import LoraSpec
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.datatypes import Sampling, UserError

IDS = torch.tensor([[5, 9, 77, 12, 3, 44, 9, 9], [8, 1, 1, 30, 7, 0, 0, 0]])
SCORED = torch.tensor([[False, True, True, True, True, True, True], [True] * 4 + [False] * 3])
NAMES = ["qwen3", "qwen2", "llama", "mistral", "phi3", "gemma2", "gemma3"]


@pytest.mark.parametrize("name", NAMES)
def test_blocks_compute_as_weights_of_16_bits_do_bit_for_bit(load_role, name: str) -> None:
    learns = load_role(name, dtype="bfloat16")
    frozen = load_role(name, dtype="bfloat16", trained=False)
    assert {p.dtype for p in learns.handle.module.parameters()} == {torch.float32}
    assert {p.dtype for p in frozen.handle.module.parameters()} == {torch.bfloat16}
    assert learns.handle.dtype == frozen.handle.dtype == torch.bfloat16
    states = [role.handle.scored_states(IDS, SCORED) for role in (learns, frozen)]
    assert states[0].dtype == torch.bfloat16
    assert torch.equal(*states)
    assert torch.equal(learns.handle.head(states[0]), frozen.handle.head(states[1]))
    for fused in (True, False):
        samplers = [Sampler(r.handle, r.codec.decode, (), fused=fused) for r in (learns, frozen)]
        rows = [SamplingRequest(np.array([5, 6, 7]), seed, Sampling(12)) for seed in range(4)]
        mine, theirs = (sampler.sample(rows) for sampler in samplers)
        for ours, other in zip(mine, theirs, strict=True):
            assert ours.tokens.tolist() == other.tokens.tolist()
            assert ours.logprobs.tolist() == other.logprobs.tolist()


def test_sampling_rounds_each_weight_once_and_sees_an_update(load_role, monkeypatch) -> None:
    role = load_role("gemma3", dtype="bfloat16")
    weights, copied = list(role.handle.parameters().values()), []
    to = torch.Tensor.to

    def counted(self: torch.Tensor, *args: object, **named: object) -> torch.Tensor:
        copied.extend(i for i, weight in enumerate(weights) if self is weight)
        return to(self, *args, **named)

    sampler = Sampler(role.handle, role.codec.decode, ())
    assert not sampler.fused
    requests = [SamplingRequest(np.array([5, 6, 7]), 1, Sampling(12))]
    monkeypatch.setattr(torch.Tensor, "to", counted)
    before = sampler.sample(requests)[0].logprobs[0]
    # The head's are those of the embedding.
    assert sorted(copied) == list(range(len(weights)))
    with torch.no_grad():
        weights[-1].mul_(1.5)
    assert sampler.sample(requests)[0].logprobs[0] != before


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_float32_and_near_those_of_float32(load_role, name: str) -> None:
    gradients = []
    for dtype in ("bfloat16", "float32"):
        handle = load_role(name, dtype=dtype).handle
        # The trap: tokens that come often, whose gradients 16 bits could not add up.
        handle.head(handle.scored_states(IDS, SCORED)).logsumexp(-1).sum().backward()
        grads = {n: p.grad for n, p in handle.parameters().items() if p.grad is not None}
        assert len(grads) == len(handle.parameters())
        assert {grad.dtype for grad in grads.values()} == {torch.float32}
        gradients.append(torch.cat([grads[n].flatten() for n in sorted(grads)]))
    assert torch.cosine_similarity(*gradients, dim=0) > 0.98


def test_what_is_exported_is_rounded_and_what_is_saved_is_not(
    load_role, shake, tmp_path: Path
) -> None:
    role = load_role("qwen3", dtype="bfloat16")
    shake(role.handle, size=1e-5)
    role.handle.save(tmp_path / "whole")
    role.handle.save(tmp_path / "rounded", role.handle.dtype)
    whole = load_file(tmp_path / "whole" / "model.safetensors")
    rounded = load_file(tmp_path / "rounded" / "model.safetensors")
    assert whole.keys() == rounded.keys()
    for name, tensor in whole.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor.to(torch.bfloat16), rounded[name])
    # What others read computes as what was trained.
    again = load_role(tmp_path / "rounded", dtype="bfloat16", trained=False)
    assert again.handle.causal_lm.config.dtype == torch.bfloat16
    assert torch.equal(
        again.handle.scored_states(IDS, SCORED), role.handle.scored_states(IDS, SCORED)
    )
    assert not list((tmp_path / "rounded").glob("*.part"))


def test_parts_of_a_decoder(load_role) -> None:
    lm = load_role("qwen3").handle.causal_lm
    names = [type(part).__name__.removeprefix("Qwen3") for part in parts(lm)]
    assert names == ["Embedding", *["DecoderLayer"] * 2, "RMSNorm", "RotaryEmbedding", "Linear"]


def test_weights_beside_the_parts_are_reported() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2)])
            self.scale = nn.Parameter(torch.ones(2))

    with pytest.raises(UserError, match=r"Odd has weights outside of its blocks.*dtype float32"):
        compute_in(Odd(), torch.bfloat16)


@pytest.mark.parametrize("name", [*NAMES, "gpt2", "gpt-neox", "mixtral", "mamba"])
@pytest.mark.parametrize("lora", [None, LoraSpec(rank=2)], ids=["full", "lora"])
def test_a_gradient_is_the_same_where_activations_are_computed_twice(load_role, name, lora):
    runs: list[tuple[int, dict[str, torch.Tensor | None]]] = []
    kept: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    for recompute in ("never", "always"):
        handle = load_role(name, lora=lora, recompute=recompute).handle
        handle.tree_forward = None
        kept.clear()
        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with hooks, handle.active():
            states = handle.scored_states(IDS, SCORED)
        blocks = sum(kept)
        with handle.active():
            handle.head(states).logsumexp(-1).sum().backward()
        grads = {n: p.grad for n, p in handle.parameters().items()}
        runs.append((blocks, grads))
    (kept_all, plain), (kept_few, again) = runs
    assert kept_few < kept_all / 2
    for key, grad in plain.items():
        assert grad is not None
        assert torch.equal(grad, again[key])


def test_rows_that_would_fit_a_tree_are_recomputed_where_that_is_asked_for(load_role) -> None:
    for recompute, tree in (("never", True), ("auto", True), ("always", False)):
        assert load_role("qwen3", recompute=recompute).handle.takes_tree(IDS) == tree


@pytest.mark.parametrize(("recompute", "times"), [("never", 0), ("always", 2)])
def test_freed_memory_goes_back_before_each_block_that_is_recomputed(
    load_role, recompute, times, monkeypatch
) -> None:
    calls: list[None] = []
    monkeypatch.setattr(
        "coterie.agents.models.blocks.return_freed_memory", lambda: calls.append(None)
    )
    handle = load_role("qwen3", recompute=recompute).handle
    with handle.active():
        states = handle.scored_states(IDS, SCORED)
        handle.head(states).sum().backward()
    # Its two blocks, forward and once more backward.
    assert len(calls) == 2 * times


@pytest.mark.parametrize(("tokens", "twice"), [(262_143, False), (262_145, True)])
def test_activations_are_computed_twice_where_they_would_take_much(load_role, tokens, twice):
    # 32 * 4 bytes * 2 layers * width 32 = 8,192 bytes a token: 2 GiB are 262,144 of them.
    handle = load_role("qwen3").handle
    assert handle.recomputes(tokens) == twice
    assert handle.uncheckpointed_tokens == 262_144


@pytest.mark.parametrize("recompute", ["never", "always"])
def test_with_recompute_set_micro_batches_have_the_budget_asked_for(load_role, recompute) -> None:
    assert load_role("qwen3", recompute=recompute).handle.uncheckpointed_tokens is None
