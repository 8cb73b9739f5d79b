"""Names, formats and shapes of what an engine is sent, told beforehand and sent block by block."""

import pytest
import torch
from safetensors.torch import load_file

from coterie.agents.models import stored
from coterie.agents.models.stored import StoredWeight, StoredWeights


@pytest.mark.parametrize("name", ["qwen3", "qwen3-moe", "mixtral", "phi3", "gpt2", "gpt-neox"])
def test_the_metadata_are_those_of_a_checkpoint(checkpoint, load_role, name: str) -> None:
    model = load_role(name).handle.causal_lm
    weights = StoredWeights(model, torch.bfloat16)
    file, sent = load_file(checkpoint(name) / "model.safetensors"), list(weights)
    described = [StoredWeight(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in sent]
    assert weights.metadata() == described
    assert {name for name, _ in sent} == file.keys()
    assert all(torch.equal(file[name].to(torch.bfloat16), tensor) for name, tensor in sent)
    assert all(torch.equal(tensor, file[name]) for name, tensor in StoredWeights(model))


def test_one_block_after_another_is_gathered(load_role, monkeypatch) -> None:
    """Four experts of three tensors each, which the model holds as two, in each of two blocks."""
    model = load_role("qwen3-moe").handle.causal_lm
    gathered: list[torch.Tensor] = []
    monkeypatch.setattr(stored, "whole", lambda tensor: gathered.append(tensor) or tensor)
    at = {name: len(gathered) for name, _ in StoredWeights(model)}
    # A norm before and after attention, four projections, two norms within, the router.
    block = 2 + 4 + 2 + 1 + 2
    assert at["model.embed_tokens.weight"] == 1
    assert at["model.layers.0.mlp.experts.3.up_proj.weight"] == 1 + block
    assert at["model.layers.1.mlp.experts.0.down_proj.weight"] == 1 + 2 * block
    assert at["lm_head.weight"] == 1 + 2 * block + 2
