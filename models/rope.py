"""Rotary position embeddings that do not change with the length of the batch."""

from typing import Any

from torch import nn
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS


def pin(module: nn.Module, context: int) -> None:
    """Fix the frequencies of ``module``'s length-dependent rotary embeddings for ``context``.

    ``longrope`` and ``dynamic`` switch frequencies with the longest position of a forward pass: a
    token's probability would depend on which rows share its batch, and keys cached earlier would
    be wrong. With a fixed context the choice is made once, as inference servers do.
    """
    for part in module.modules():
        kind = getattr(part, "rope_type", None)
        if isinstance(kind, str) and (kind == "longrope" or "dynamic" in kind):
            _pin_one(part, kind, context)


def _pin_one(rotary: Any, kind: str, context: int) -> None:
    frequencies, scaling = ROPE_INIT_FUNCTIONS[kind](
        rotary.config, rotary.inv_freq.device, seq_len=context
    )
    rotary.inv_freq = frequencies
    rotary.original_inv_freq = frequencies
    rotary.attention_scaling = scaling
    rotary.rope_type = "default"
