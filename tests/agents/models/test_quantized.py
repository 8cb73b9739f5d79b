"""A base in 4 or 8 bits: roles share it, adapters learn on it and fit the model in full, and what
has no use is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.loading import base_key, load_team
from coterie.agents.models.locate import check_model
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import UserError

from .quantized_models import LORA, learn, learner, load, row

pytestmark = pytest.mark.usefixtures("any_processor")


@pytest.fixture(params=["nf4", "int8"])
def dtype(request: pytest.FixtureRequest) -> str:
    if request.param == "nf4":
        pytest.importorskip("bitsandbytes", reason="not run: bitsandbytes is not installed")
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, write_shaped: Callable[..., Path]) -> Path:
    """A Llama with biases, whose widths are multiples of 64."""
    target = tmp_path_factory.mktemp("codes") / "llama"
    return write_shaped(target, "llama", spread=0.1, hidden_size=64, intermediate_size=128)


def codes_of(handle: ModelHandle) -> list[torch.Tensor]:
    return [p for p in handle.module.parameters() if p.dtype in (torch.int8, torch.uint8)]


def test_roles_share_a_base_in_codes_but_not_with_one_in_full(folder: Path, dtype: str) -> None:
    spec = ModelSpec(str(folder), lora=LORA, device="cpu", dtype=dtype)
    full = ModelSpec(str(folder), lora=LORA, device="cpu", dtype="float32")
    team = load_team({"a": spec, "b": spec, "c": full}, {"a", "b", "c"})
    assert team["a"].handle.module is team["b"].handle.module
    assert team["a"].handle.module is not team["c"].handle.module
    assert base_key(spec) != base_key(full)
    before = [p.clone() for p in team["b"].handle.parameters().values()]
    learn(learner(team["a"].handle), range(1))
    assert all(map(torch.equal, before, team["b"].handle.parameters().values()))


def test_a_frozen_role_may_be_in_codes(folder: Path, dtype: str) -> None:
    spec = ModelSpec(str(folder), device="cpu", dtype=dtype)
    handle = load_team({"a": spec}, set())["a"].handle
    assert not handle.parameters()
    # 8 bits hold the head, too.
    assert len(codes_of(handle)) == {"nf4": 14, "int8": 15}[dtype]


def test_an_adapter_learns_and_a_checkpoint_goes_on_bit_for_bit(
    folder: Path, tmp_path: Path, dtype: str
) -> None:
    whole, broken = learner(load(folder, dtype)), learner(load(folder, dtype))
    codes = [p.clone() for p in codes_of(whole.model)]
    learn(whole, range(2))
    metrics = learn(broken, range(2))
    assert metrics["grad_norm"] > 0
    tensors, plain = broken.state_dict()
    broken.model.save(tmp_path)
    tensors, plain = {n: t.clone() for n, t in tensors.items()}, json.loads(json.dumps(plain))
    again = learner(load(folder, dtype))
    again.model.load_weights(tmp_path)
    again.load_state_dict(tensors, plain)
    assert learn(whole, range(2, 4)) == learn(again, range(2, 4))
    for name, weight in whole.model.parameters().items():
        assert torch.equal(weight, again.model.parameters()[name])
        assert weight.dtype == torch.float32
    assert all(map(torch.equal, codes, codes_of(whole.model)))


def test_the_reference_is_the_base_in_codes(
    folder: Path, shake: Callable[..., None], dtype: str
) -> None:
    handle = load(folder, dtype)
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
    folder: Path, tmp_path: Path, shake: Callable[..., None], dtype: str
) -> None:
    handle = load(folder, dtype)
    shake(handle)
    handle.save(tmp_path)
    stored = load_file(tmp_path / "adapter_model.safetensors")
    assert all(t.dtype == torch.float32 and ".lora_" in name for name, t in stored.items())
    plain = AutoModelForCausalLM.from_pretrained(folder)
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
def test_what_has_no_use_is_refused(folder: Path, settings: Any, sentence: str, dtype: str) -> None:
    spec = ModelSpec(**{"model": str(folder), "dtype": dtype} | settings)
    with pytest.raises(UserError, match=sentence.format(dtype)):
        check_model(spec, role="a", trained=True)


def test_weights_that_are_quantized_already_are_refused(
    folder: Path, tmp_path: Path, dtype: str
) -> None:
    copy = shutil.copytree(folder, tmp_path / "quantized")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"quantization_config": {}}))
    with pytest.raises(UserError, match="is quantized already"):
        check_model(ModelSpec(str(copy), lora=LORA, dtype=dtype))
