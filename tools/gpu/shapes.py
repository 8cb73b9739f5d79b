"""Models of random weights with the shapes of real ones, made where they are measured."""

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


@dataclass(frozen=True)
class Work:
    """What a step of one shape does."""

    problems: int
    """Of a step; each has four traces of each role."""
    new: int
    """Tokens of an answer; a random model hardly ever ends one before."""
    sampled: int
    """Rows that the sampler alone is measured with."""


SHAPES = {"small": _SMALL, "0.5b": _HALF, "3b": {}}
WORK = {"small": Work(2, 16, 8), "0.5b": Work(16, 512, 192), "3b": Work(8, 256, 96)}


def device() -> torch.device:
    """Where everything is measured."""
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def settle() -> None:
    """Wait until the device has done what it was given."""
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
    """The model, put together on the device."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    with quietly(), device():
        return AutoModelForCausalLM.from_config(config_of(shape, marks), dtype=dtype).eval()


def checkpoint(shape: str, folder: Path) -> Path:
    """A folder with such a model and a tokenizer, as the hub has them; written once."""
    from transformers import AutoConfig

    if not (folder / "config.json").is_file():
        half = folder.with_name(f"{folder.name}.part")
        build(_LIKE, half)
        module = make(shape, torch.bfloat16, AutoConfig.from_pretrained(half))
        with quietly():
            module.save_pretrained(half)
        half.rename(folder)
    return folder
