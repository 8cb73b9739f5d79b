"""The number of a model's weights, from the headers of its files or its name."""

import json
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from safetensors import safe_open

from coterie.agents.models.gguf import gguf_file
from coterie.agents.models.gguf_header import read_header
from coterie.agents.models.locate import hub_snapshot, local_folder, named_adapter
from coterie.agents.models.papers import CONFIGS
from coterie.agents.models.spec import ModelSpec

TINY_BELOW = 5_000_000
"""Models with fewer weights are tiny; the shipped ones have an eighth of a million."""

# The part of a name that says how many weights there are: 135M, 0.5B, 1.5b.
_NAMED = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([MB])(?![A-Za-z0-9])", re.IGNORECASE)
_WORTH = {"m": 1e6, "b": 1e9}


def count_weights(model: str, revision: str | None = None) -> int | None:
    """Return the number of weights of ``model`` (of the base of an adapter), from the headers of
    its safetensors or GGUF file, its config.json, or its name; None if unknown.

    >>> count_weights("Qwen/Qwen2.5-0.5B-Instruct")
    500000000
    """
    try:
        adapter = named_adapter(model, revision)
        if adapter is not None:
            return count_weights(adapter.base, adapter.base_revision)
        if (path := gguf_file(model)) is not None:
            return sum(tensor.elements for tensor in read_header(path).tensors)
        spec = ModelSpec(model, revision=revision)
        folder = local_folder(spec) or hub_snapshot(spec)
        if folder is None:
            stored, config = 0, CONFIGS.get(model)
        else:
            stored = sum(map(_stored, folder.glob("model*.safetensors")))
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = stored or _by_config(config) or _by_name(model)
        return weights if isinstance(weights, int) else None  # text that a configuration multiplied
    except Exception:
        return None  # check_model in locate.py reports damaged files


def is_tiny(model: str, revision: str | None = None) -> bool:
    """Whether ``model`` has fewer than :data:`TINY_BELOW` weights; false if unknown."""
    if model.startswith("tiny:"):
        return True
    weights = count_weights(model, revision)
    return weights is not None and weights < TINY_BELOW


def _stored(path: Path) -> int:
    with safe_open(path, "np") as file:
        return sum(prod(part.get_shape()) for part in map(file.get_slice, file.keys()))


def _by_config(config: Mapping[str, Any] | None) -> int | None:
    """Weights of a decoder with gated feed-forward layers, without norms and biases."""
    text = (config or {}).get("text_config", config) or {}
    if not {"num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size"} <= text.keys():
        return None
    layers, width, inner = (
        text[name] for name in ("num_hidden_layers", "hidden_size", "intermediate_size")
    )
    heads = text["num_attention_heads"]
    head = text.get("head_dim") or width // heads
    kv = text.get("num_key_value_heads") or heads
    tables = text["vocab_size"] * width * (1 if text.get("tie_word_embeddings", True) else 2)
    return layers * (2 * width * head * (heads + kv) + 3 * width * inner) + tables


def _by_name(model: str) -> int | None:
    match = _NAMED.findall(model)
    return int(float(match[-1][0]) * _WORTH[match[-1][1].lower()]) if match else None
