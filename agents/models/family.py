"""Facts about decoders by architecture: the Llama family, activations, rotary embeddings."""

from typing import Any

from torch import nn

FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3", "phi3"})


def is_llama_like(model: nn.Module) -> bool:
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


def cache_width(config: Any) -> int:
    """Numbers that one layer caches for one token, its keys and values; 0 without attention."""
    heads = getattr(config, "num_attention_heads", None)
    if not heads:
        return 0
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    return 2 * (getattr(config, "num_key_value_heads", None) or heads) * head_dim


def activation_bytes(config: Any, tokens: int, itemsize: int) -> int:
    """Bytes of activations that the backward pass of the blocks keeps: 32 numbers per token, layer
    and unit of width, as measured on packed Qwen3 (docs/LOG.md); with fused norms and rotations 17
    (arXiv:2205.05198, equation 1 without its quadratic term)."""
    return 32 * itemsize * tokens * config.num_hidden_layers * config.hidden_size


_ACTIVATIONS_KEPT = 2 << 30
"""Bytes of activations above which it pays to compute them twice."""


def tokens_kept(config: Any, itemsize: int) -> int:
    """Tokens whose activations take at most :data:`_ACTIVATIONS_KEPT`."""
    return _ACTIVATIONS_KEPT // activation_bytes(config, 1, itemsize)


def cap_scores(module: Any) -> None:
    """Switch a model that caps its attention scores (Gemma 2, arXiv:2408.00118, 2.3) to eager
    attention: torch's own would leave the cap out."""
    if getattr(module.config.get_text_config(), "attn_logit_softcapping", None) is not None:
        module.set_attn_implementation("eager")


def pin_rope(module: nn.Module, context: int) -> None:
    """Fix the frequencies of ``module``'s length-dependent rotary embeddings for ``context``.

    ``longrope`` and ``dynamic`` switch frequencies with the longest position of a forward pass: a
    token's probability would depend on which rows share its batch, and keys cached earlier would
    be wrong. With a fixed context the choice is made once, as inference servers do.
    """
    for part in module.modules():
        kind = getattr(part, "rope_type", None)
        if isinstance(kind, str) and (kind == "longrope" or "dynamic" in kind):
            _pin(part, kind, context)


def _pin(rotary: Any, kind: str, context: int) -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    frequencies, scaling = ROPE_INIT_FUNCTIONS[kind](
        rotary.config, rotary.inv_freq.device, seq_len=context
    )
    rotary.inv_freq = frequencies
    rotary.original_inv_freq = frequencies
    rotary.attention_scaling = scaling
    rotary.rope_type = "default"
