"""A base in 8 bits: what its weights become, what a product is, that adapters learn on it, and what
is refused."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from coterie.agents.models import int8, loading
from coterie.agents.models.int8 import Int8Linear
from coterie.agents.models.locate import check_model
from coterie.agents.models.number_format import native_int8
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import UserError
from coterie.extras.ops.footprint import footprint

from .quantized_models import LORA, exact, load, row, write_values

pytestmark = pytest.mark.usefixtures("any_processor")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, write_shaped: Callable[..., Path]) -> Path:
    """A Llama with biases, whose head is its embedding."""
    target = tmp_path_factory.mktemp("int8") / "llama"
    write_shaped(target, "llama", spread=0.1, hidden_size=64, intermediate_size=128)
    module = AutoModelForCausalLM.from_pretrained(target)
    module.config.tie_word_embeddings = True
    module.tie_weights()
    module.save_pretrained(target)
    assert "lm_head.weight" not in load_file(target / "model.safetensors")
    return target


def random_matrix(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_row_is_rounded_by_its_largest_number() -> None:
    x = torch.tensor([[1.0, -2.0, 0.5, 0.003], [0.0, 0.0, 0.0, 0.0], [-1e-20, 0.0, 0.0, 0.0]])
    codes, scale = int8.round_rows(x)
    # 127 stands for 2; half of that is 63.5, which rounds to the even 64.
    assert codes.tolist() == [[64, -127, 32, 0], [0, 0, 0, 0], [-127, 0, 0, 0]]
    assert scale[0].item() == pytest.approx(2 / 127)
    wide = random_matrix(50, 300)
    codes, scale = int8.round_rows(wide)
    assert ((codes * scale - wide).abs() <= 0.5001 * scale).all()


def test_a_product_is_that_of_the_rounded_numbers() -> None:
    x, weight = random_matrix(9, 48), random_matrix(20, 48, seed=1)
    bias = random_matrix(20, seed=2)
    layer = Int8Linear(weight, bias)
    a, b = (m.double() for m in (x, weight))
    a = torch.round(a / a.abs().amax(1, keepdim=True) * 127) * a.abs().amax(1, keepdim=True) / 127
    b = torch.round(b / b.abs().amax(1, keepdim=True) * 127) * b.abs().amax(1, keepdim=True) / 127
    torch.testing.assert_close(layer(x).double(), a @ b.t() + bias, rtol=1e-5, atol=1e-5)
    assert (layer(x) - (x @ weight.t() + bias)).norm() < 0.02 * layer(x).norm()
    torch.testing.assert_close(layer.float_weight().double(), b, rtol=1e-6, atol=1e-7)
    assert torch.equal(layer(x.view(3, 3, 48)), layer(x).view(3, 3, 20))
    assert layer(x[:0]).shape == (0, 20)


def test_a_row_does_not_depend_on_those_beside_it() -> None:
    layer = Int8Linear(random_matrix(20, 48), None)
    x = random_matrix(33, 48, seed=1)
    x[5] *= 1e4
    together = layer(x)
    assert all(torch.equal(layer(x[i : i + 1])[0], together[i]) for i in range(33))


def test_a_gradient_is_multiplied_by_the_same_codes() -> None:
    layer, grad = Int8Linear(random_matrix(20, 48), None), random_matrix(9, 20, seed=3)
    x = random_matrix(9, 48, seed=1).requires_grad_()
    layer(x).backward(grad)
    assert x.grad is not None
    expected = grad @ layer.float_weight()
    assert (x.grad - expected).norm() < 0.02 * expected.norm()
    scaled = grad * layer.scale_O
    step = scaled.abs().amax(1, keepdim=True) / 127
    exactly = (torch.round(scaled / step) * step) @ layer.weight.float()
    torch.testing.assert_close(x.grad, exactly, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_stays_so(bad: float) -> None:
    x = random_matrix(3, 48)
    x[1, 7] = bad
    finite = Int8Linear(random_matrix(20, 48), None)(x).isfinite().all(1)
    assert finite.tolist() == [True, False, True]


def test_a_head_becomes_codes_and_the_embedding_that_it_was_tied_to_stays(folder: Path) -> None:
    module = load(folder, "int8").causal_lm
    head, table = module.lm_head, module.get_input_embeddings().weight
    assert isinstance(head, Int8Linear)
    assert ((head.float_weight() - table).abs() <= 0.501 * head.scale_O[:, None]).all()
    assert torch.equal(table, load_file(folder / "model.safetensors")["model.embed_tokens.weight"])


def test_a_written_base_loads_elsewhere(folder: Path, tmp_path: Path) -> None:
    handle = load(folder, "int8")
    handle.save_base(tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert theirs.lm_head.weight is theirs.model.embed_tokens.weight
    ids = torch.from_numpy(row(handle, 1).tokens)[None]
    with torch.no_grad(), handle.active():
        ours = handle.backbone(ids)
        states = theirs.model(input_ids=ids).last_hidden_state
    assert torch.cosine_similarity(ours, states, dim=-1).min() > 0.99


@pytest.mark.parametrize("rounded", [True, False])
def test_a_gguf_file_is_read_as_it_is_stored(
    small_gguf: Any, rounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its codes are those of a model that was read in float32, which takes twice the memory."""
    path, _ = small_gguf.gemma(quantized=rounded)
    read, formats = loading._read, []

    def noted(name: str, config: Any, common: Any, dtype: torch.dtype) -> Any:
        formats.append(dtype)
        return read(name, config, common, dtype)

    monkeypatch.setattr(loading, "_read", noted)
    ours = load(path, "int8")
    monkeypatch.setattr(loading, "is_quantized", lambda name: False)
    theirs = load(path, "int8")
    assert formats == [torch.bfloat16 if rounded else torch.float32, torch.float32]
    assert ours.module.config.dtype == torch.float32
    state, other = ours.module.state_dict(), theirs.module.state_dict()
    assert state.keys() == other.keys()
    for name, tensor in state.items():
        assert tensor.dtype == other[name].dtype
        assert torch.equal(tensor, other[name]), name


def test_an_adapter_learns_as_on_the_values_of_the_codes(folder: Path, tmp_path: Path) -> None:
    """The gradient of the first update has the direction of one in float32."""
    ours = load(folder, "int8")
    theirs, gradients = load(write_values(ours, folder, tmp_path), "float32"), []
    for handle in (ours, theirs):
        ids = torch.from_numpy(row(ours, 1).tokens)[None]
        for number, p in enumerate(handle.parameters().values()):
            p.data = 0.1 * random_matrix(*p.shape, seed=number)
        with handle.active():
            logits = handle.head(handle.backbone(ids))
            logits.log_softmax(-1)[0, :, 5].sum().backward()
        grads = [p.grad for p in handle.parameters().values() if p.grad is not None]
        assert len(grads) == 28
        gradients.append(torch.cat([grad.flatten() for grad in grads]))
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99
    assert float(gradients[0].norm() / gradients[1].norm()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("tied", [True, False])
def test_a_plan_counts_the_bytes_that_are_there(
    folder: Path, checkpoint: Callable[[str], Path], tied: bool
) -> None:
    handle = load(folder if tied else checkpoint("llama"), "int8")
    assert handle.causal_lm.config.tie_word_embeddings == tied
    spec = ModelSpec(str(folder), lora=LORA, device="cpu", dtype="int8")
    planned = footprint(handle.causal_lm.config, spec, None, torch.float32)
    base = {name: p for name, p in handle.module.named_parameters() if ".lora_" not in name}
    scales = sum(b.nbytes for name, b in handle.module.named_buffers() if "scale_O" in name)
    assert planned.weights == sum(p.nbytes for p in base.values()) + scales
    layers = [p for name, p in base.items() if p.dtype == torch.int8 and ".layers." in name]
    assert planned.copied == sum(p.nbytes + 4 * len(p) for p in layers)
    assert planned.copied < handle.copy_bytes < handle.plain_bytes
    assert planned.int8
    # The sampler decides by this number whether it makes a copy.
    assert handle.copy_bytes == planned.weights - scales


def test_a_device_without_an_exact_kernel_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saturated(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return exact(a, b).clamp(-(2**15), 2**15 - 1)

    def missing(*_: object) -> None:
        raise RuntimeError("not implemented")

    sentence = "no 8-bit kernel that works on {}: say --agents.ROLE.dtype float32"
    for kernel in (saturated, missing):
        with monkeypatch.context() as patch:
            patch.setattr(int8, "integer_product", kernel)
            with pytest.raises(UserError, match=sentence.format("cpu")):
                load(folder, "int8")
    with pytest.raises(UserError, match=sentence.format("cuda:0")):
        int8.check_kernel(torch.device("cuda:0"))
    monkeypatch.setattr("coterie.agents.models.locate._check_device", lambda device: None)
    with pytest.raises(UserError, match=r"computes on a CPU only: .* --agents\.b\.dtype nf4"):
        check_model(ModelSpec(str(folder), lora=LORA, dtype="int8", device="cuda:0"), role="b")


@pytest.mark.skipif(native_int8() is None, reason="not run: no avx512_vnni or avx_vnni")
@pytest.mark.parametrize("instructions", ["ALL", "AVX2"])
def test_the_kernel_is_exact_where_the_flags_say_so(instructions: str) -> None:
    """Without the instructions it may not be, which the check finds."""
    code = """
import torch
from coterie.agents.models.int8 import check_kernel, integer_product
check_kernel(torch.device("cpu"))
a = torch.randint(-127, 128, (300, 900), dtype=torch.int8)
b = torch.randint(-127, 128, (900, 70), dtype=torch.int8)
assert torch.equal(integer_product(a, b).double(), a.double() @ b.double())
"""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    refused = instructions != "ALL" and "no 8-bit kernel that works" in done.stderr
    assert done.returncode == 0 or refused, done.stderr
