"""Configurations of the papers' models: the fields of ``config.json`` that decide size and
arithmetic.

They come from the files on the hub, without the defaults of transformers. ``--plan`` uses them
without a network, and ``research/miniatures/shapes.py`` builds models with random weights from
them.
"""

from collections.abc import Mapping
from typing import Any


def _decoder(kind: str, layers: int, width: int, inner: int, heads: int, kv: int, **more: Any):
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "tie_word_embeddings": False,
        **more,
    }


def _qwen2(layers: int, width: int, inner: int, heads: int, kv: int, **more: Any) -> dict[str, Any]:
    own = {"vocab_size": 152_064, "max_position_embeddings": 32_768, "rms_norm_eps": 1e-6}
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
    return _decoder("qwen2", layers, width, inner, heads, kv, **own | rope | more)


def _qwen3(layers: int, width: int, inner: int, context: int, theta: float, **more: Any):
    own = {"vocab_size": 151_936, "max_position_embeddings": context, "head_dim": 128}
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": theta}, "rms_norm_eps": 1e-6}
    return _decoder("qwen3", layers, width, inner, 32, 8, **own | rope | more)


def _ministral3(layers: int, width: int, inner: int, tied: bool) -> dict[str, Any]:
    """A decoder next to an image encoder."""
    rope = {
        "rope_type": "yarn",
        "rope_theta": 1e6,
        "factor": 16.0,
        "mscale": 1.0,
        "original_max_position_embeddings": 16_384,
        "mscale_all_dim": 1.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "llama_4_scaling_beta": 0.1,
    }
    own = {"vocab_size": 131_072, "max_position_embeddings": 262_144, "head_dim": 128}
    text = _decoder("ministral3", layers, width, inner, 32, 8, **own, rope_parameters=rope)
    return {
        "model_type": "mistral3",
        "tie_word_embeddings": tied,
        "text_config": text | {"tie_word_embeddings": tied},
        "vision_config": {
            "model_type": "pixtral",
            "num_hidden_layers": 24,
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_attention_heads": 16,
            "head_dim": 64,
            "patch_size": 14,
            "image_size": 1540,
        },
    }


# 48 pairs of frequencies: half of three quarters of a head's 128 dimensions. The real factors grow
# from 1; what they are decides no size.
_LONG = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "partial_rotary_factor": 0.75,
    "original_max_position_embeddings": 4096,
    "short_factor": [1.0] * 48,
    "long_factor": [1.0 + i for i in range(48)],
}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
_LLAMA = {"rope_parameters": _LLAMA3, "max_position_embeddings": 131_072, "vocab_size": 128_256}
_PHI = {"rope_parameters": _LONG, "max_position_embeddings": 131_072, "vocab_size": 200_064}
_R1 = {
    "max_position_embeddings": 131_072,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
}
_SMALL_VOCABULARY = {"vocab_size": 151_936, "tie_word_embeddings": True}
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "Qwen/Qwen2.5-1.5B-Instruct": _qwen2(28, 1536, 8960, 12, 2, **_SMALL_VOCABULARY),
    "Qwen/Qwen2.5-3B-Instruct": _qwen2(36, 2048, 11_008, 16, 2, **_SMALL_VOCABULARY),
    "Qwen/Qwen2.5-7B-Instruct": _qwen2(28, 3584, 18_944, 28, 4),
    "Qwen/Qwen2.5-32B-Instruct": _qwen2(64, 5120, 27_648, 40, 8),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": _qwen2(28, 3584, 18_944, 28, 4, **_R1),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": _qwen2(
        48, 5120, 13_824, 40, 8, **_R1 | {"rope_parameters": {"rope_theta": 1e6}}
    ),
    "Qwen/QwQ-32B": _qwen2(64, 5120, 27_648, 40, 8, max_position_embeddings=40_960),
    "Qwen/Qwen3-4B-Instruct-2507": _qwen3(36, 2560, 9728, 262_144, 5e6, tie_word_embeddings=True),
    "Qwen/Qwen3-8B": _qwen3(36, 4096, 12_288, 40_960, 1e6),
    "meta-llama/Llama-3.1-8B-Instruct": _decoder("llama", 32, 4096, 14_336, 32, 8, **_LLAMA),
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": _decoder(
        "llama", 32, 4096, 14_336, 32, 8, **_LLAMA
    ),
    "microsoft/Phi-4-mini-reasoning": _decoder(
        "phi3", 32, 3072, 8192, 24, 8, **_PHI | {"tie_word_embeddings": True}
    ),
    "mistralai/Ministral-3-3B-Reasoning-2512": _ministral3(26, 3072, 9216, True),
    "mistralai/Ministral-3-8B-Reasoning-2512": _ministral3(34, 4096, 14_336, False),
}
"""Hub id -> the fields of its ``config.json``. Phi-3-small's code comes with its checkpoint, and
has no entry."""
