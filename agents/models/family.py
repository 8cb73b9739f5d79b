"""Properties of decoder architectures: the Llama family, activations, rotary embeddings."""

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
    """Return the number of latest positions that a token attends to, itself included; None: all."""
    if config.model_type in ("qwen2", "qwen3"):
        return attention.sliding_window
    if config.model_type in ("mistral", "phi3"):
        return getattr(config, "sliding_window", None)
    return None


def cache_width(config: Any) -> int:
    """Return the numbers of keys and values that a layer caches for a token; 0 without
    attention."""
    heads = getattr(config, "num_attention_heads", None)
    if not heads:
        return 0
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    return 2 * (getattr(config, "num_key_value_heads", None) or heads) * head_dim


def activation_bytes(config: Any, tokens: int, itemsize: int) -> int:
    """Return the bytes of activations that the blocks' backward pass needs: 32 numbers for each
    token, layer and unit of width, as measured on packed Qwen3 (docs/LOG.md). With fused norms and
    rotations it would be 17 (arXiv:2205.05198, equation 1 without its quadratic term)."""
    return 32 * itemsize * tokens * config.num_hidden_layers * config.hidden_size


_ACTIVATIONS_KEPT = 2 << 30
"""Bytes of activations above which recomputation is worth its time."""


def tokens_kept(config: Any, itemsize: int) -> int:
    """Return the number of tokens whose activations take at most :data:`_ACTIVATIONS_KEPT`."""
    return _ACTIVATIONS_KEPT // activation_bytes(config, 1, itemsize)


def cap_scores(module: Any) -> None:
    """Switch models that cap attention scores (Gemma 2, arXiv:2408.00118, 2.3) to eager attention,
    because torch's kernels ignore the cap."""
    if getattr(module.config.get_text_config(), "attn_logit_softcapping", None) is not None:
        module.set_attn_implementation("eager")


def pin_rope(module: nn.Module, context: int) -> None:
    """Fix the frequencies of length-dependent rotary embeddings for ``context``.

    ``longrope`` and ``dynamic`` choose frequencies by the longest position of a forward pass. A
    token's probability would then depend on other rows of its batch, and cached keys would become
    wrong. With a fixed context the choice is made once, as in inference servers.
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
