"""The decoders whose parts we know by name: transformers' own Llama family."""

from typing import Any

from torch import nn

FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3", "phi3"})


def supported(model: nn.Module) -> bool:
    """Whether ``model`` is a causal LM of transformers' own Llama family."""
    config: Any = getattr(model, "config", None)
    return (
        getattr(config, "model_type", None) in FAMILIES
        and type(model).__module__.startswith("transformers.models.")
        and type(model).__name__.endswith("ForCausalLM")
    )


def window(config: Any, attention: Any) -> int | None:
    """Number of latest positions that a token attends to, itself included; None: all of them."""
    if config.model_type in ("qwen2", "qwen3"):
        return attention.sliding_window
    if config.model_type in ("mistral", "phi3"):
        return getattr(config, "sliding_window", None)
    return None
