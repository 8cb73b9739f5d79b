"""Wider heads: the same probabilities, on whole models and under adapters."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from coterie.agents.models.locate import TINY
from coterie.agents.models.spec import LoraSpec
from coterie.agents.vllm.export import (
    cpu_width,
    export_checkpoint,
    widen,
    widen_adapter,
    widen_config,
)
from coterie.datatypes import UserError

IDS = torch.tensor([[5, 9, 77, 12, 3, 44, 9, 8, 101]])


def logp(folder: Path) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        return model(IDS).logits.log_softmax(-1)


@pytest.mark.parametrize(
    ("head_dim", "width"), [(16, 32), (24, 96), (8, 32), (32, None), (40, 80), (48, 96)]
)
def test_the_narrowest_whole_multiple_is_taken(head_dim: int, width: int | None) -> None:
    assert cpu_width({"head_dim": head_dim, "num_attention_heads": 4}) == width


def test_a_head_that_no_kernel_holds_is_refused() -> None:
    with pytest.raises(UserError, match=r"heads of 72 dimensions, only 32, 64.*--engine local"):
        cpu_width({"head_dim": 72, "num_attention_heads": 4})


def test_heads_have_other_names_elsewhere() -> None:
    assert cpu_width({"model_type": "mamba", "hidden_size": 64}) is None
    assert cpu_width({"hidden_size": 64, "num_attention_heads": 4}) == 32
    assert cpu_width({"model_type": "gpt2", "n_embd": 64, "n_head": 4}) == 32


def test_dimensions_move_with_their_frequency() -> None:
    # d = 4 in D = 8: frequencies of pairs (0, 2) and (1, 3) are those of (0, 4) and (2, 6).
    q = torch.arange(1.0, 5.0)[:, None]
    wide = widen("x.self_attn.k_proj.weight", q, head_dim=4, width=8, qk_norm=False)
    assert wide[:, 0].tolist() == [1, 0, 2, 0, 3, 0, 4, 0]
    # sqrt(8 / 4) makes up for dividing by sqrt(8) in place of sqrt(4).
    wide = widen("x.self_attn.q_proj.weight", q, head_dim=4, width=8, qk_norm=False)
    assert wide[2, 0] == pytest.approx(2 * 2**0.5)


@pytest.mark.parametrize("name", ["qwen3", "qwen2", "mistral", "tiny:alice", "tiny:expert"])
def test_a_widened_model_has_the_same_probabilities(checkpoint, tmp_path: Path, name: str) -> None:
    tiny, width = name.removeprefix("tiny:"), 96 if name == "tiny:expert" else 32
    source = checkpoint(name) if tiny == name else TINY / tiny
    export_checkpoint(source, tmp_path, width=width, untie=True)
    assert torch.allclose(logp(source), logp(tmp_path), atol=2e-5)
    assert json.loads((tmp_path / "config.json").read_text())["head_dim"] == width


def test_an_adapter_widens_with_its_base(checkpoint, load_role, shake, tmp_path: Path) -> None:
    from peft import PeftModel

    handle = load_role("qwen3", lora=LoraSpec(rank=4)).handle
    shake(handle)
    with torch.no_grad(), handle.active():
        narrow = handle.head(handle.backbone(IDS)).log_softmax(-1)
    handle.save(tmp_path / "adapter")
    widen_adapter(tmp_path / "adapter", handle.causal_lm.config.to_dict(), 32)
    export_checkpoint(checkpoint("qwen3"), tmp_path / "base", width=32, untie=False)
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.float32)
    wide = PeftModel.from_pretrained(base, str(tmp_path / "adapter"))
    with torch.no_grad():
        assert torch.allclose(wide(IDS).logits.log_softmax(-1), narrow, atol=2e-5)


@pytest.mark.parametrize("name", ["llama", "phi3"])
def test_another_rotary_embedding_is_refused(checkpoint, name: str) -> None:
    config = json.loads((checkpoint(name) / "config.json").read_text())
    with pytest.raises(UserError, match="cannot be widened"):
        widen_config(config, 32)


@pytest.mark.parametrize(
    ("name", "embedding"),
    [
        ("qwen3", "model.embed_tokens.weight"),
        ("gpt2", "transformer.wte.weight"),
        ("opt", "model.decoder.embed_tokens.weight"),
    ],
)
def test_a_tied_head_gets_its_own_copy(checkpoint, tmp_path: Path, name, embedding) -> None:
    export_checkpoint(checkpoint(name), tmp_path, width=None, untie=True)
    tensors = load_file(tmp_path / "model.safetensors")
    assert torch.equal(tensors["lm_head.weight"], tensors[embedding])
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is False
    assert torch.equal(logp(checkpoint(name)), logp(tmp_path))


def test_a_head_that_an_engine_knows_as_the_embedding_alone_stays_tied(checkpoint, tmp_path):
    export_checkpoint(checkpoint("gemma2"), tmp_path, width=None, untie=True)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"]


def test_a_checkpoint_in_several_files_keeps_its_index(checkpoint, tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(checkpoint("qwen3"), dtype=torch.float32)
    model.save_pretrained(tmp_path / "shards", max_shard_size="30KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    export_checkpoint(tmp_path / "shards", tmp_path / "out", width=32, untie=True)
    assert torch.allclose(logp(tmp_path / "shards"), logp(tmp_path / "out"), atol=2e-5)


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="no safetensors"):
        export_checkpoint(tmp_path, tmp_path / "out", width=None, untie=True)
