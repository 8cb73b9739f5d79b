"""The sampler's log-probabilities are those of the model's own forward pass.

The reference reads each row alone, unpadded, without a cache: no mask, batch or position of ours.
"""

import platform
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from coterie.agents.models.loading import LoadedRole
from coterie.agents.models.spec import LoraSpec
from coterie.agents.sampling import Sampler, SamplingRequest, weights
from coterie.datatypes import Completion, Sampling, UserError

NAMES = ["qwen3", "qwen2", "llama", "mistral", "phi3", "phi3-long", "gemma2"]
IDS = torch.tensor([[5, 9, 77, 12, 3]])


def ragged_rows(temperature: float = 1.0) -> list[SamplingRequest]:
    rng = np.random.default_rng(1)
    prompts = [rng.integers(2, 300, size=n) for n in (1, 3, 7, 12, 19)]
    # Two rows of each prompt; answers of different length, so that rows leave the batch early.
    return [
        SamplingRequest(prompts[i // 2], 100 + i, Sampling(5 + i, temperature=temperature))
        for i in range(10)
    ]


def reference(role: LoadedRole, row: SamplingRequest, out: Completion) -> np.ndarray:
    ids = torch.tensor(np.concatenate([row.tokens, out.tokens]))[None]
    with torch.no_grad(), role.handle.active():
        logits = role.handle.causal_lm(input_ids=ids, use_cache=False).logits[0].double()
    logp = torch.log_softmax(logits / row.sampling.temperature, -1)[len(row.tokens) - 1 : -1]
    return logp.gather(1, ids[0, len(row.tokens) :, None])[:, 0].numpy()


def worst_gap(role: LoadedRole, sampler: Sampler, rows: list[SamplingRequest]) -> float:
    outs = sampler.sample(rows)
    assert [len(o.tokens) for o in outs] == [r.sampling.max_new_tokens for r in rows]
    return max(np.abs(reference(role, r, o) - o.logprobs).max() for r, o in zip(rows, outs))


@pytest.mark.parametrize("lora", [None, LoraSpec(rank=4)], ids=["full", "lora"])
@pytest.mark.parametrize("name", NAMES)
def test_logprobs_before_and_after_an_update(load_role, shake, name: str, lora) -> None:
    role = load_role(name, lora=lora)
    if lora:
        shake(role.handle, size=0.2, only="lora_B")
    sampler = Sampler(role.handle, role.codec.decode, ())
    assert sampler.fused == (name != "gemma2")
    rows = ragged_rows()
    # Logits up to 10, of which rounding changes 1e-4 at most (``near``).
    assert worst_gap(role, sampler, rows) < 1e-3
    before = sampler.sample(rows)[9]
    shake(role.handle, size=0.05)
    assert worst_gap(role, sampler, rows) < 1e-3
    # The update is large enough that stale weights would have failed.
    assert np.abs(reference(role, rows[9], before) - before.logprobs).max() > 1e-2


@pytest.fixture
def loaded_adapter(checkpoint, tmp_path) -> Callable[..., tuple[LoraSpec, Any]]:
    """Writes an adapter with peft; returns its spec, and peft's own model with it."""

    def write(name: str, **settings: Any) -> tuple[LoraSpec, Any]:
        base = AutoModelForCausalLM.from_pretrained(checkpoint(name), dtype=torch.float32)
        config = LoraConfig(r=4, task_type="CAUSAL_LM", **settings)
        with warnings.catch_warnings(action="ignore"):  # of tied embeddings
            model = get_peft_model(base, config)
        generator = torch.Generator().manual_seed(1)
        for p in model.parameters():
            if p.requires_grad:
                p.data += 0.2 * torch.randn(p.shape, generator=generator)
        with warnings.catch_warnings(action="ignore"):
            model.save_pretrained(tmp_path / "adapter")
        return LoraSpec(adapter=str(tmp_path / "adapter")), model.eval()

    return write


@pytest.mark.parametrize(
    ("fused", "settings"),
    [
        (True, {"target_modules": ["q_proj", "down_proj"], "use_rslora": True}),
        (True, {"target_modules": ["q_proj", "down_proj"], "rank_pattern": {"q_proj": 2}}),
        (False, {"target_modules": ["q_proj", "down_proj"], "use_dora": True}),
        (False, {"target_modules": ["q_proj"], "lora_bias": True}),
        (False, {"target_modules": ["q_proj", "lm_head"]}),
        (False, {"target_modules": ["q_proj", "embed_tokens"]}),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_logprobs_with_loaded_adapters(load_role, loaded_adapter, fused, settings) -> None:
    """Copies of the weights cannot hold every adapter; what they cannot hold was ignored."""
    spec, peft = loaded_adapter("qwen2", **settings)
    role = load_role("qwen2", lora=spec)
    with torch.no_grad(), role.handle.active():
        own = role.handle.causal_lm(input_ids=IDS).logits
    torch.testing.assert_close(own, peft(input_ids=IDS).logits)
    sampler = Sampler(role.handle, role.codec.decode, ())
    assert sampler.fused == fused
    assert worst_gap(role, sampler, ragged_rows()) < 1e-3


@pytest.mark.parametrize(
    "settings", [{"bias": "all"}, {"modules_to_save": ["norm"]}, {"trainable_token_indices": [5]}]
)
def test_adapters_that_would_change_the_base_are_refused(
    load_role, loaded_adapter, settings
) -> None:
    """Other roles on the base had the biases and modules of a loaded adapter, too."""
    spec, _ = loaded_adapter("qwen2", target_modules=["q_proj"], **settings)
    with pytest.raises(UserError, match="beside its own matrices: merge it"):
        load_role("qwen2", lora=spec)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"init_lora_weights": "pissa"}, r"changed weights of its model \(pissa\): merge"),
        ({"init_lora_weights": "olora"}, r"changed weights of its model \(olora\): merge"),
        ({"layer_replication": [(0, 1), (0, 1)]}, r"model \(layer_replication\): merge"),
        ({"alora_invocation_tokens": [5]}, "acts only behind its invocation tokens"),
    ],
)
def test_adapters_that_need_another_base_or_forward_pass_are_refused(
    load_role, loaded_adapter, settings, why
) -> None:
    """peft subtracts such an adapter's start from a base that other roles share."""
    spec, _ = loaded_adapter("qwen2", target_modules=["q_proj"], **settings)
    with pytest.raises(UserError, match=why):
        load_role("qwen2", lora=spec)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_logprobs_with_packed_weights(load_role, shake, monkeypatch, name: str) -> None:
    # In float32 the difference is small enough to test.
    monkeypatch.setattr(weights, "SMALL", 0)
    role = load_role(name, lora=LoraSpec(rank=4))
    shake(role.handle, size=0.2, only="lora_B")
    assert worst_gap(role, Sampler(role.handle, role.codec.decode, ()), ragged_rows()) < 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_packed_product_is_rounded_once(monkeypatch, dtype: torch.dtype) -> None:
    monkeypatch.setattr(weights, "SMALL", 0)
    random = torch.Generator().manual_seed(0)
    shapes = (48, 96), (5, 96), (48,), (5, 48)
    weight, x, bias, residual = (torch.randn(s, generator=random).to(dtype) for s in shapes)
    if not weights.packs(weight):
        pytest.skip(f"no packed products in {dtype} here")
    packed = weights.matrix(weight)
    assert isinstance(packed, weights.PackedMatrix)
    plain = x.double() @ weight.double().t()
    for added in ((None, None), (bias, None), (None, residual), (bias, residual)):
        exact = plain + sum(part.double() for part in added if part is not None)
        error = (packed.multiply(x, *added).double() - exact).abs()
        # Half a unit in the last place, and what float32 rounds in a sum of 96 products.
        assert (error <= exact.abs() * torch.finfo(dtype).eps / 2 + 1e-5).all()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="packed on x86 only")
def test_large_matrices_are_packed_in_float32_and_those_of_tiny_models_are_not(load_role) -> None:
    assert weights.packs(torch.empty(896, 896))
    assert not weights.packs(torch.empty(896, 896, dtype=torch.float64))
    lm = load_role("tiny:alice").handle.causal_lm
    held = weights.FusedWeights(lm, None, torch.float32)
    matrices = [held.head] + [part for layer in held.layers for part in (layer.qkv, layer.gate_up)]
    assert all(isinstance(matrix, torch.Tensor) for matrix in matrices)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="packed on x86 only")
def test_a_packed_head_is_shared_until_its_weights_change() -> None:
    weight, x = torch.randn(1024, 256), torch.randn(1, 256)
    first = weights.head_of(weight, torch.float32)
    assert isinstance(first, weights.PackedMatrix)
    assert weights.head_of(weight, torch.float32) is first
    weight.mul_(2)
    second = weights.head_of(weight, torch.float32)
    assert isinstance(second, weights.PackedMatrix)
    torch.testing.assert_close(second.multiply(x), 2 * first.multiply(x))
    del first, second
    assert weights._HEADS[weight][1]() is None


@pytest.mark.parametrize("name", ["qwen3", "phi3"])
def test_the_generic_decoder_computes_the_same(load_role, without_ties, near, name: str) -> None:
    role = load_role(name)
    rows = ragged_rows(temperature=0.8)
    fused = Sampler(role.handle, role.codec.decode, ()).sample(rows)
    generic = Sampler(role.handle, role.codec.decode, (), fused=False).sample(rows)
    for a, b in zip(fused, generic, strict=True):
        assert a.tokens.tolist() == b.tokens.tolist()
        near(a.logprobs, b.logprobs)


def test_a_cap_on_attention_scores_is_computed(checkpoint, load_role, near) -> None:
    ours = load_role("gemma2").handle.causal_lm
    eager = AutoModelForCausalLM.from_pretrained(
        checkpoint("gemma2"), attn_implementation="eager", dtype=torch.float32
    )
    with torch.no_grad():
        near(ours(IDS).logits, eager(IDS).logits)


def test_rotary_frequencies_do_not_follow_the_batch(checkpoint, load_role, near) -> None:
    # Contexts of up to 128 tokens are allowed, so the frequencies are those for more than 16.
    ours = load_role("phi3-long").handle.causal_lm
    theirs = AutoModelForCausalLM.from_pretrained(checkpoint("phi3-long")).eval()
    ids = torch.arange(5, 29)[None]
    with torch.no_grad():
        near(ours(ids).logits, theirs(ids).logits)
        near(ours(ids[:, :9]).logits, theirs(ids).logits[:, :9])
        # A model left alone answers otherwise when the rest of the context is missing.
        assert (theirs(ids[:, :9]).logits - theirs(ids).logits[:, :9]).abs().max() > 1e-2
        short = load_role("phi3-long", context=16).handle.causal_lm
        near(short(ids[:, :9]).logits, theirs(ids[:, :9]).logits)
