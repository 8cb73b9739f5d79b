"""How much of a device's arithmetic an update uses."""

import time
from typing import Any

import torch

from gpu.shapes import device, settle

_WIDTH = {"cuda": 8192, "cpu": 512}
_TIMES = {"cuda": 20, "cpu": 3}


def ceiling() -> float:
    """Measure bfloat16 operations per second in a product of two large random matrices."""
    here = device()
    width = _WIDTH[here.type]
    a, b = (torch.randn(width, width, device=here, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        torch.mm(a, b)
    settle()
    start = time.perf_counter()
    for _ in range(_TIMES[here.type]):
        torch.mm(a, b)
    settle()
    return _TIMES[here.type] * 2 * width**3 / (time.perf_counter() - start)


def operations(config: Any, tokens: int, scored: int, *, full: bool) -> float:
    """Count an update's operations by its mathematics: 2 per weight and token forward, 2 for the
    gradients of activations, and with full weights 2 for theirs (Kaplan et al., arXiv:2001.08361).

    Recomputation is not counted; attention's own products are left out, as less than 5 % of
    these rows.

    Args:
        config: the model's configuration; all tokens pass its blocks, scored ones its head.
        tokens: number of tokens computed forward.
        scored: number of them whose next token is scored.
        full: whether full weights are trained.
    """
    width, inner = config.hidden_size, config.intermediate_size
    head = getattr(config, "head_dim", None) or width // config.num_attention_heads
    attention = 2 * width * head * (config.num_attention_heads + config.num_key_value_heads)
    blocks = config.num_hidden_layers * (attention + 3 * width * inner)
    forward = 2 * (blocks * tokens + width * config.vocab_size * scored)
    return (3 if full else 2) * forward
