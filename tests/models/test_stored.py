"""Names, formats and shapes of what an engine is sent, told beforehand and sent block by block."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from coterie.models import stored
from coterie.models.loading import load_team
from coterie.models.spec import ModelSpec
from coterie.models.stored import StoredWeight, StoredWeights

FILE = "model.safetensors"


@pytest.mark.parametrize("name", ["qwen3", "qwen3-moe", "mixtral", "phi3", "gpt2", "gpt-neox"])
def test_the_metadata_are_those_of_a_checkpoint(
    checkpoint: Callable[[str], Path], name: str
) -> None:
    spec = ModelSpec(str(checkpoint(name)), device="cpu")
    model = load_team({"alice": spec}, {"alice"})["alice"].handle.causal_lm
    weights, file = StoredWeights(model, torch.bfloat16), load_file(checkpoint(name) / FILE)
    sent = list(weights)
    described = [StoredWeight(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in sent]
    assert weights.metadata() == described
    assert {name for name, _ in sent} == file.keys()
    assert all(torch.equal(file[name].to(torch.bfloat16), tensor) for name, tensor in sent)
    assert all(torch.equal(tensor, file[name]) for name, tensor in StoredWeights(model))


def test_one_block_after_another_is_gathered(
    checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four experts of three tensors each, which the model holds as two, in each of two blocks."""
    spec = ModelSpec(str(checkpoint("qwen3-moe")), device="cpu")
    model = load_team({"alice": spec}, set())["alice"].handle.causal_lm
    gathered: list[torch.Tensor] = []
    monkeypatch.setattr(stored, "whole", lambda tensor: gathered.append(tensor) or tensor)
    at = {name: len(gathered) for name, _ in StoredWeights(model)}
    # A norm before and after attention, four projections, two norms within, the router.
    block = 2 + 4 + 2 + 1 + 2
    assert at["model.embed_tokens.weight"] == 1
    assert at["model.layers.0.mlp.experts.3.up_proj.weight"] == 1 + block
    assert at["model.layers.1.mlp.experts.0.down_proj.weight"] == 1 + 2 * block
    assert at["lm_head.weight"] == 1 + 2 * block + 2
