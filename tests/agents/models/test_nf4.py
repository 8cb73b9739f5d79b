"""A base in 4 bits: what its weights become, that gradients are those of these weights, and
what is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from coterie.agents.models import nf4
from coterie.agents.models.gguf import gguf_file
from coterie.agents.models.loading import load_team
from coterie.agents.models.locate import check_model
from coterie.agents.models.number_format import NumberFormat
from coterie.agents.models.quantized import plain_state
from coterie.agents.models.spec import ModelSpec
from coterie.agents.sampling.policy import LocalPolicy
from coterie.agents.sampling.sample import Sampler
from coterie.datatypes import Prompt, Sampling, UserError
from coterie.extras.ops.footprint import footprint

from .quantized_models import LORA, learn, learner, load, row

pytest.importorskip("bitsandbytes", reason="not run: bitsandbytes is not installed")

# Appendix E of arXiv:2305.14314.
CODES = torch.tensor(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
     -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
     0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
     0.7229568362236023, 1.0]
)  # fmt: skip
PROMPT = np.arange(10, 30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, write_shaped: Callable[..., Path]) -> Path:
    """A Llama with biases, whose widths are multiples of 64."""
    target = tmp_path_factory.mktemp("nf4") / "llama"
    return write_shaped(target, "llama", spread=0.1, hidden_size=64, intermediate_size=128)


def rounded(weight_OI: torch.Tensor) -> torch.Tensor:
    """The nearest codes times each block's largest value."""
    block_N64 = weight_OI.reshape(-1, 64)
    largest_N1 = block_N64.abs().amax(1, keepdim=True)
    nearest = ((block_N64 / largest_N1)[..., None] - CODES).abs().argmin(-1)
    return (CODES[nearest] * largest_N1).view_as(weight_OI)


def test_linear_layers_become_codes_and_nothing_else_changes(folder: Path) -> None:
    plain = load_file(folder / "model.safetensors")
    state = plain_state(load(folder, "nf4").causal_lm)
    changed = set()
    for name, tensor in state.items():
        if ".lora_" in name:
            continue
        name = name.replace(".base_layer.", ".")
        if torch.equal(tensor, plain[name]):
            continue
        changed.add(name)
        # The second quantization moves a block's largest value by up to one of 256 steps.
        torch.testing.assert_close(tensor, rounded(plain[name]), rtol=0.05, atol=1e-4)
        assert not torch.equal(tensor, plain[name])
    attention = [f"self_attn.{x}_proj.weight" for x in "qkvo"]
    layers = [*attention, *(f"mlp.{x}_proj.weight" for x in ("gate", "up", "down"))]
    assert changed == {f"model.layers.{n}.{layer}" for n in range(2) for layer in layers}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_in_codes_computes_as_one_that_has_their_values(
    folder: Path, tmp_path: Path, near: Callable[..., None], monkeypatch: Any, dtype: torch.dtype
) -> None:
    kind = str(dtype).rpartition(".")[2]
    with monkeypatch.context() as patch:
        chosen = NumberFormat(kind, "", "nf4")
        patch.setattr(
            "coterie.agents.models.loading.number_format_of", lambda spec, trained=False: chosen
        )
        ours = load(folder, "nf4")
    ours.save_base(tmp_path / "plain")
    load_tokenizer(folder, tmp_path / "plain")
    theirs = load(tmp_path / "plain", kind)
    assert ours.copy_bytes == theirs.copy_bytes
    for handle in (ours, theirs):
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for p in handle.parameters().values():
                p.copy_(0.1 * torch.randn(p.shape, generator=generator))
    # Without a gradient first: it must leave the codes alone.
    codes = [p.clone() for p in ours.module.parameters() if p.dtype == torch.uint8]
    ids = torch.from_numpy(row(ours, 1).tokens)[None]
    scores = []
    for handle in (ours, theirs):
        with torch.no_grad(), handle.active():
            handle.backbone(ids)
        with handle.active():
            logits = handle.head(handle.backbone(ids))
            logits.float().log_softmax(-1)[0, :, 5].sum().backward()
        scores.append([logits.detach(), *(p.grad for p in handle.parameters().values())])
    for mine, other in zip(*scores, strict=True):
        assert float(other.float().norm()) > 0
        near(mine, other) if dtype == torch.float32 else torch.testing.assert_close(
            mine.float(), other.float(), rtol=0.02, atol=0.02
        )
    held = [p for p in ours.module.parameters() if p.dtype == torch.uint8]
    assert len(held) == 14
    assert all(map(torch.equal, codes, held))


def load_tokenizer(source: Path, target: Path) -> None:
    for file in source.glob("tokenizer*"):
        shutil.copy(file, target)


@pytest.mark.parametrize("fused", [True, False])
async def test_the_sampler_knows_the_probabilities_of_the_learner(
    folder: Path, near: Callable[..., None], shake: Callable[..., None], fused: bool
) -> None:
    spec = ModelSpec(str(folder), lora=LORA, device="cpu", dtype="nf4")
    role = load_team({"a": spec}, {"a"})["a"]
    shake(role.handle)
    sampler = Sampler(role.handle, role.codec.decode, (), fused=fused)
    assert sampler.fused == fused
    policy = LocalPolicy(role.handle, role.codec)
    policy.sampler = sampler
    answer = await policy(Prompt(PROMPT, "", "a_0", 7), Sampling(12))
    ids = torch.from_numpy(np.concatenate([PROMPT, answer.tokens]))[None]
    with torch.no_grad(), role.handle.active():
        logits = role.handle.head(role.handle.backbone(ids))[0, len(PROMPT) - 1 : -1]
    logp = logits.log_softmax(-1).gather(1, ids[0, len(PROMPT) :, None])[:, 0]
    near(torch.from_numpy(np.array(answer.logprobs)), logp)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: there is no GPU")
def test_an_adapter_learns_on_a_gpu(folder: Path) -> None:
    handle = load(folder, "nf4", device="cuda")
    codes = [p for p in handle.module.parameters() if p.dtype == torch.uint8]
    assert len(codes) == 14
    assert all(p.device.type == "cuda" for p in handle.module.parameters())
    before = [p.clone() for p in codes]
    assert learn(learner(handle), range(2))["grad_norm"] > 0
    assert all(map(torch.equal, before, codes))


def test_a_plan_counts_the_bytes_that_are_there(folder: Path) -> None:
    handle = load(folder, "nf4")
    spec = ModelSpec(str(folder), lora=LORA, device="cpu", dtype="nf4")
    planned = footprint(handle.causal_lm.config, spec, None, torch.float32)
    held = 0
    for name, p in handle.module.named_parameters():
        if ".lora_" in name:
            continue
        held += p.nbytes
        if (state := getattr(p, "quant_state", None)) is not None:
            held += state.absmax.nbytes + state.state2.absmax.nbytes
    assert planned.weights == pytest.approx(held, rel=1e-3)
    # A layer has 64 (64 + 32 + 32 + 64) weights in its attention and 3 * 64 * 128 behind it.
    weights = 2 * (64 * 192 + 3 * 64 * 128)
    full = footprint(handle.causal_lm.config, ModelSpec("x", lora=LORA), None, torch.float32)
    assert full.weights - planned.weights == pytest.approx(weights * (4 - 4.127 / 8), rel=1e-3)
    assert full.copied == planned.copied


def test_weights_that_are_rounded_already_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    assert gguf_file(str(file)) == file
    with pytest.raises(UserError, match=r"would round the weights of .* a second time"):
        check_model(ModelSpec(str(file), lora=LORA, dtype="nf4"))


def test_a_model_without_a_layer_that_fits_is_refused(checkpoint: Callable[[str], Path]) -> None:
    # GPT-2 has no nn.Linear; the other's layers have 32 and 48 inputs.
    for name in ("gpt2", "llama"):
        with pytest.raises(UserError, match="has no linear layer that nf4 can hold"):
            load(checkpoint(name), "nf4")


def test_a_device_without_a_kernel_is_refused_before_a_model_loads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA Setup\nfailed")

    monkeypatch.setattr("coterie.agents.models.loading._load_base", fail)
    with monkeypatch.context() as patch:
        patch.setattr(nf4, "_quantized", fail)
        with pytest.raises(
            UserError, match=r"works on cpu \(RuntimeError: CUDA Setup failed\): lea"
        ):
            load(folder, "nf4")
    with monkeypatch.context() as patch:
        patch.setattr(nf4, "_quantized", lambda layer, device: torch.nn.Linear(64, 64))
        with pytest.raises(UserError, match=r"works on cpu \(its result is wrong\)"):
            load(folder, "nf4")
