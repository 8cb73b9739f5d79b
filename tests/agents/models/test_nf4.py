"""A base in 4 bits: what its weights become, that gradients are those of these weights, and
what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from coterie.agents.models import nf4
from coterie.agents.models.gguf import gguf_file
from coterie.agents.models.locate import check_model
from coterie.agents.models.number_format import NumberFormat
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import UserError
from coterie.extras.ops.footprint import footprint

from .quantized_models import LORA, learn, learner, load, row, write_values

pytest.importorskip("bitsandbytes", reason="not run: bitsandbytes is not installed")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_in_codes_computes_as_one_that_has_their_values(
    llama64: Path, tmp_path: Path, near: Callable[..., None], monkeypatch: Any, dtype: torch.dtype
) -> None:
    kind = str(dtype).rpartition(".")[2]
    with monkeypatch.context() as patch:
        chosen = NumberFormat(kind, "", "nf4")
        patch.setattr(
            "coterie.agents.models.loading.number_format_of", lambda spec, trained=False: chosen
        )
        ours = load(llama64, "nf4")
    theirs = load(write_values(ours, llama64, tmp_path / "plain"), kind)
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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: there is no GPU")
def test_an_adapter_learns_on_a_gpu(llama64: Path) -> None:
    handle = load(llama64, "nf4", device="cuda")
    codes = [p for p in handle.module.parameters() if p.dtype == torch.uint8]
    assert len(codes) == 14
    assert all(p.device.type == "cuda" for p in handle.module.parameters())
    before = [p.clone() for p in codes]
    assert learn(learner(handle), range(2))["grad_norm"] > 0
    assert all(map(torch.equal, before, codes))


def test_a_plan_counts_the_bytes_that_are_there(llama64: Path) -> None:
    handle = load(llama64, "nf4")
    spec = ModelSpec(str(llama64), lora=LORA, device="cpu", dtype="nf4")
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


def test_a_device_without_a_kernel_is_refused_before_a_model_loads(
    llama64: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA Setup\nfailed")

    monkeypatch.setattr("coterie.agents.models.loading._load_base", fail)
    with monkeypatch.context() as patch:
        patch.setattr(nf4, "_quantized", fail)
        with pytest.raises(
            UserError, match=r"works on cpu \(RuntimeError: CUDA Setup failed\): lea"
        ):
            load(llama64, "nf4")
    with monkeypatch.context() as patch:
        patch.setattr(nf4, "_quantized", lambda layer, device: torch.nn.Linear(64, 64))
        with pytest.raises(UserError, match=r"works on cpu \(its result is wrong\)"):
            load(llama64, "nf4")
