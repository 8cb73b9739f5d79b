"""A base in 4 or 8 bits: roles share it, adapters learn on it and fit the model in full, and what
has no use is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.loading import base_key, load_team
from coterie.agents.models.locate import check_model
from coterie.agents.models.quantized import plain_state
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.datatypes import Sampling, UserError

from .quantized_models import LORA, learn, learner, load, row
from .test_agreement import reference, worst_gap

pytestmark = pytest.mark.usefixtures("any_processor")

# Appendix E of arXiv:2305.14314.
CODES = torch.tensor(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
     -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
     0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
     0.7229568362236023, 1.0]
)  # fmt: skip
LAYERS = {
    f"model.layers.{n}.{layer}_proj.weight"
    for n in range(2)
    for layer in (*(f"self_attn.{x}" for x in "qkvo"), "mlp.gate", "mlp.up", "mlp.down")
}


@pytest.fixture(params=["nf4", "int8"])
def dtype(request: pytest.FixtureRequest) -> str:
    if request.param == "nf4":
        pytest.importorskip("bitsandbytes", reason="not run: bitsandbytes is not installed")
    return request.param


def codes_of(handle: ModelHandle) -> list[torch.Tensor]:
    return [p for p in handle.module.parameters() if p.dtype in (torch.int8, torch.uint8)]


def to_nf4(weight_OI: torch.Tensor) -> torch.Tensor:
    """The nearest codes times each block's largest value."""
    block_N64 = weight_OI.reshape(-1, 64)
    largest_N1 = block_N64.abs().amax(1, keepdim=True)
    nearest = ((block_N64 / largest_N1)[..., None] - CODES).abs().argmin(-1)
    return (CODES[nearest] * largest_N1).view_as(weight_OI)


def test_linear_layers_become_codes_and_nothing_else_changes(llama64: Path, dtype: str) -> None:
    plain, changed = load_file(llama64 / "model.safetensors"), {}
    for name, tensor in plain_state(load(llama64, dtype).causal_lm).items():
        name = name.replace(".base_layer.", ".")
        if ".lora_" not in name and not torch.equal(tensor, plain[name]):
            changed[name] = tensor
    assert changed.keys() == LAYERS | ({"lm_head.weight"} if dtype == "int8" else set())
    for name, tensor in changed.items():
        if dtype == "int8":
            step_O1 = plain[name].abs().amax(1, keepdim=True) / 127
            assert ((tensor - plain[name]).abs() <= 0.501 * step_O1).all()
        else:
            # The second quantization moves a block's largest value by up to one of 256 steps.
            torch.testing.assert_close(tensor, to_nf4(plain[name]), rtol=0.05, atol=1e-4)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("targets", [(), ("q_proj", "v_proj", "down_proj")])
def test_the_sampler_knows_the_probabilities_of_the_learner(
    llama64: Path, shake: Callable[..., None], dtype: str, fused: bool, targets: tuple[str, ...]
) -> None:
    lora = LoraSpec(4, targets=targets)
    spec = ModelSpec(str(llama64), lora, device="cpu", dtype=dtype)  # type: ignore[arg-type]
    role = load_team({"a": spec}, {"a"})["a"]
    sampler = Sampler(role.handle, role.codec.decode, (), fused=fused)
    assert sampler.fused == fused
    # In 8 bits, one code more or less is 1/127 of a row's largest number, through a few layers.
    bound = {"int8": 0.03, "nf4": 1e-3}[dtype]
    rows = [SamplingRequest(np.arange(10, 30), 7, Sampling(12))]
    assert worst_gap(role, sampler, rows) < bound
    (before,) = sampler.sample(rows)
    shake(role.handle)
    assert worst_gap(role, sampler, rows) < bound
    assert np.abs(reference(role, rows[0], before) - before.logprobs).max() > 10 * bound


def test_a_model_without_a_layer_that_fits_is_refused(
    checkpoint: Callable[[str], Path], dtype: str
) -> None:
    # GPT-2 has no nn.Linear but its head; blocks of 64 do not fit the other's 32 and 48 inputs.
    for name in ("gpt2", "llama") if dtype == "nf4" else ("gpt2",):
        with pytest.raises(UserError, match=f"has no linear layer that {dtype} can hold"):
            load(checkpoint(name), dtype)


def test_roles_share_a_base_in_codes_but_not_with_one_in_full(llama64: Path, dtype: str) -> None:
    spec = ModelSpec(str(llama64), lora=LORA, device="cpu", dtype=dtype)
    full = ModelSpec(str(llama64), lora=LORA, device="cpu", dtype="float32")
    team = load_team({"a": spec, "b": spec, "c": full}, {"a", "b", "c"})
    assert team["a"].handle.module is team["b"].handle.module
    assert team["a"].handle.module is not team["c"].handle.module
    assert base_key(spec) != base_key(full)
    before = [p.clone() for p in team["b"].handle.parameters().values()]
    learn(learner(team["a"].handle), range(1))
    assert all(map(torch.equal, before, team["b"].handle.parameters().values()))


def test_a_frozen_role_may_be_in_codes(llama64: Path, dtype: str) -> None:
    spec = ModelSpec(str(llama64), device="cpu", dtype=dtype)
    handle = load_team({"a": spec}, set())["a"].handle
    assert not handle.parameters()
    # 8 bits hold the head, too.
    assert len(codes_of(handle)) == {"nf4": 14, "int8": 15}[dtype]


def test_an_adapter_learns_and_a_checkpoint_goes_on_bit_for_bit(
    llama64: Path, tmp_path: Path, dtype: str
) -> None:
    whole, broken = learner(load(llama64, dtype)), learner(load(llama64, dtype))
    codes = [p.clone() for p in codes_of(whole.model)]
    learn(whole, range(2))
    metrics = learn(broken, range(2))
    assert metrics["grad_norm"] > 0
    tensors, plain = broken.state_dict()
    broken.model.save(tmp_path)
    tensors, plain = {n: t.clone() for n, t in tensors.items()}, json.loads(json.dumps(plain))
    again = learner(load(llama64, dtype))
    again.model.load_weights(tmp_path)
    again.load_state_dict(tensors, plain)
    assert learn(whole, range(2, 4)) == learn(again, range(2, 4))
    for name, weight in whole.model.parameters().items():
        assert torch.equal(weight, again.model.parameters()[name])
        assert weight.dtype == torch.float32
    assert all(map(torch.equal, codes, codes_of(whole.model)))


def test_the_reference_is_the_base_in_codes(
    llama64: Path, shake: Callable[..., None], dtype: str
) -> None:
    handle = load(llama64, dtype)
    ids = torch.from_numpy(row(handle, 1).tokens)[None]

    def states() -> torch.Tensor:
        return handle.backbone(ids)

    with torch.no_grad(), handle.active():
        start = states()
    shake(handle)
    with torch.no_grad(), handle.reference():
        assert torch.equal(states(), start)
    with torch.no_grad(), handle.active():
        assert not torch.equal(states(), start)


def test_a_saved_adapter_fits_the_model_in_full(
    llama64: Path, tmp_path: Path, shake: Callable[..., None], dtype: str
) -> None:
    handle = load(llama64, dtype)
    shake(handle)
    handle.save(tmp_path)
    stored = load_file(tmp_path / "adapter_model.safetensors")
    assert all(t.dtype == torch.float32 and ".lora_" in name for name, t in stored.items())
    plain = AutoModelForCausalLM.from_pretrained(llama64)
    theirs = PeftModel.from_pretrained(plain, str(tmp_path)).state_dict()
    own = handle.parameters()
    assert len(own) == 28
    for name, weight in own.items():
        assert torch.equal(weight, theirs[name.replace(".weight", ".default.weight")])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, r"--agents\.a\.dtype {} freezes the weights, .* --agents\.a\.tuning lora"),
        ({"model": "tiny:alice", "lora": LORA}, "tiny:alice, which is tiny: leave it out"),
    ],
)
def test_what_has_no_use_is_refused(
    llama64: Path, settings: Any, sentence: str, dtype: str
) -> None:
    spec = ModelSpec(**{"model": str(llama64), "dtype": dtype} | settings)
    with pytest.raises(UserError, match=sentence.format(dtype)):
        check_model(spec, role="a", trained=True)


def test_weights_that_are_quantized_already_are_refused(
    llama64: Path, tmp_path: Path, dtype: str
) -> None:
    copy = shutil.copytree(llama64, tmp_path / "quantized")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"quantization_config": {}}))
    with pytest.raises(UserError, match="is quantized already"):
        check_model(ModelSpec(str(copy), lora=LORA, dtype=dtype))
