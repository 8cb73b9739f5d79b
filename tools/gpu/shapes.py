"""Models of random weights with the shapes of real ones, their work, and the device's ceiling."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from coterie.agents.models.papers import CONFIGS
from coterie.agents.models.process import quietly
from miniatures.shapes import build

_LIKE = "Qwen/Qwen2.5-3B-Instruct"
_HALF = {
    "num_hidden_layers": 24,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_attention_heads": 14,
}
_SMALL = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_attention_heads": 4,
    "vocab_size": 2048,
}
SHAPES = {"small": _SMALL, "0.5b": _HALF, "3b": {}}
"""Shape -> how its configuration differs from that of the 3B."""


@dataclass(frozen=True)
class Work:
    """The work of a step of one shape."""

    problems: int
    """Each has four traces of each role."""
    new: int
    """Tokens of an answer; a random model hardly ever ends one before."""
    sampled: int
    """Rows of the sampler's own measurement."""


WORK = {"small": Work(2, 16, 8), "0.5b": Work(16, 512, 192), "3b": Work(8, 256, 96)}


def device() -> torch.device:
    """Return the device of all measurements."""
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def settle() -> None:
    """Wait until the GPU has done its work: kernels run behind Python's back."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def config_of(shape: str, marks: Any = None) -> Any:
    """Return the configuration of a shape, with the special tokens of ``marks`` if it is given."""
    from transformers import AutoConfig

    own = {**CONFIGS[_LIKE], **SHAPES[shape]}
    for name in ("eos_token_id", "pad_token_id", "bos_token_id"):
        own[name] = getattr(marks, name, None)
    with quietly():
        return AutoConfig.for_model(**own)


def make(shape: str, dtype: torch.dtype, marks: Any = None) -> Any:
    """Build a model on the device; the same weights each time."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    with quietly(), device():
        return AutoModelForCausalLM.from_config(config_of(shape, marks), dtype=dtype).eval()


def checkpoint(shape: str, folder: Path) -> Path:
    """Write a model and its tokenizer to ``folder`` in the hub's form, unless they are there."""
    from transformers import AutoConfig

    if not (folder / "config.json").is_file():
        half = folder.with_name(f"{folder.name}.part")
        build(_LIKE, half)
        module = make(shape, torch.bfloat16, AutoConfig.from_pretrained(half))
        with quietly():
            module.save_pretrained(half)
        half.rename(folder)
    return folder


def ceiling() -> float:
    """Measure bfloat16 operations per second in a product of two large random matrices."""
    here = device()
    width, times = (8192, 20) if here.type == "cuda" else (512, 3)
    a, b = (torch.randn(width, width, device=here, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        torch.mm(a, b)
    settle()
    start = time.perf_counter()
    for _ in range(times):
        torch.mm(a, b)
    settle()
    return times * 2 * width**3 / (time.perf_counter() - start)


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
