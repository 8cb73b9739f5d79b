"""What is measured beside TRL's update is the same update."""

import warnings
from typing import Any

import pytest
import torch

from coterie.agents.models.lora import add_adapter
from coterie.agents.models.spec import LoraSpec
from gpu.shapes import config_of, make
from gpu.update import ours, rows, trl

LENGTHS = [6, 12, 9, 3]


def built(tuning: str) -> Any:
    """The same weights each time. A copy of a model would compute with the layers of the first."""
    module = make("small", torch.float32)
    return add_adapter(module, "alice", LoraSpec(), 0) if tuning == "lora" else module


@pytest.mark.slow  # TRL is long in coming
@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_both_sides_take_the_same_step(tuning: str) -> None:
    module, other = (built(tuning) for _ in range(2))
    made = rows(config_of("small").vocab_size, 20, LENGTHS)
    start = {name: p.detach().clone() for name, p in module.named_parameters() if p.requires_grad}
    ours(module, tuning, "always")(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what TRL says when it is imported and begins
        trl(other, 20)(made)
    went = [
        torch.cat([(dict(trained.named_parameters())[n] - p).flatten() for n, p in start.items()])
        for trained in (module, other)
    ]
    assert went[0].norm() > 0
    # AdamW's first step is nearly the sign of a gradient, and some are nearly 0.
    assert torch.cosine_similarity(*went, dim=0) > 0.98
