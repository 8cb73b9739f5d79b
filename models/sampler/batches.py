"""How many rows are sampled at once: bounded by the memory of their caches and logits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from models.sampler.sample import Row

_CPU_CACHE_BYTES = 2 << 30
_LOGITS_BYTES = 1 << 29


@dataclass(frozen=True)
class Limits:
    """Bounds of one batch."""

    rows: int
    tokens: int
    """Rows times (longest prompt + longest answer)."""

    @staticmethod
    def for_model(model: Any, device: torch.device) -> "Limits":
        """Bounds by free memory: a quarter of a GPU's, 2 GiB on a CPU."""
        config = model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or (
            config.hidden_size // config.num_attention_heads
        )
        per_token = 2 * config.num_hidden_layers * heads * width * model.dtype.itemsize
        free = _CPU_CACHE_BYTES
        if device.type == "cuda":
            free = torch.cuda.mem_get_info(device)[0] // 4
        # Logits, probabilities, their running sum and one temporary, in float32.
        per_row = 16 * config.vocab_size
        return Limits(rows=max(1, _LOGITS_BYTES // per_row), tokens=max(1, free // per_token))


def partition(rows: Sequence["Row"], limits: Limits) -> Iterator[list[int]]:
    """Places of ``rows`` in batches within ``limits``; equal prompts and similar lengths
    together. A single row that is beyond the limits is a batch of its own."""
    order = sorted(
        range(len(rows)), key=lambda i: (len(rows[i].tokens), rows[i].tokens.tobytes(), i)
    )
    batch: list[int] = []
    answer = 0
    for i in order:
        # Ascending lengths: the newest row has the longest prompt.
        longest = max(answer, rows[i].sampling.max_new_tokens)
        size = (len(batch) + 1) * (len(rows[i].tokens) + longest)
        if batch and (len(batch) == limits.rows or size > limits.tokens):
            yield batch
            batch, longest = [], rows[i].sampling.max_new_tokens
        batch.append(i)
        answer = longest
    if batch:
        yield batch
