"""Exports checkpoints for engines, with wider attention heads if there are no kernels for narrow
ones.

Zeros between the dimensions of a head keep the products of queries, keys and values. A rotary
embedding turns the pair (j, j + d/2) by an angle that depends only on j / d; in a head of D = m d
dimensions that is the pair (m j, m j + D/2).
"""

import json
import re
import shutil
from collections.abc import Container
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from coterie.agents.models.saving import store
from coterie.datatypes import UserError

# H heads, d dimensions of a head, D those of the wider one

_ROWS = re.compile(r"\.[qkv]_proj\.(weight|bias|lora_B\.weight)$")
_COLUMNS = re.compile(r"\.o_proj\.(weight|lora_A\.weight)$")
_NORMS = re.compile(r"\.[qk]_norm\.weight$")
_FAMILIES = ("qwen2", "qwen3", "llama", "mistral")

# Head widths that vLLM's attention on a CPU has kernels for.
_CPU_HEADS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)


def head_dim_of(config: dict[str, Any]) -> int:
    """Return the dimensions of an attention head in a checkpoint's configuration."""
    width = config.get("hidden_size") or config.get("n_embd")
    return int(config.get("head_dim") or width // _heads(config))  # type: ignore[operator]


def _heads(config: dict[str, Any]) -> int:
    return int(config.get("num_attention_heads") or config.get("n_head") or 0)


def cpu_width(config: dict[str, Any]) -> int | None:
    """Return the width to which heads must be widened for an engine on a CPU: the smallest multiple
    with a kernel. None if the heads have a kernel, or without attention.

    Raises:
        UserError: no multiple has a kernel.
    """
    if not _heads(config):
        return None
    head_dim = head_dim_of(config)
    width = next((width for width in _CPU_HEADS if width % head_dim == 0), None)
    if width is None:
        known = ", ".join(map(str, _CPU_HEADS))
        raise UserError(
            f"the engine has no attention for heads of {head_dim} dimensions, only {known}; "
            "sample in this process with --engine local"
        )
    return None if width == head_dim else width


def widen_config(config: dict[str, Any], width: int) -> dict[str, Any]:
    """Return a checkpoint's configuration with heads of ``width``.

    Raises:
        UserError: the layout of the architecture's heads is unknown.
    """
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    plain = rope.get("rope_type", "default") == "default" and "partial_rotary_factor" not in config
    if config.get("model_type") not in _FAMILIES or not plain:
        raise UserError(
            f"heads of a {config.get('model_type')!r} model with this rotary embedding cannot be "
            "widened for the engine; sample in this process with --engine local"
        )
    return config | {"head_dim": width}


def widen(name: str, tensor: Tensor, *, head_dim: int, width: int, qk_norm: bool) -> Tensor:
    """Return a tensor of a checkpoint, or of a LoRA adapter on it, for heads of ``width``.

    Attention divides by sqrt(D) instead of sqrt(d), and a norm over a head has a mean over D
    numbers, D - d of which are zero. Queries, or their norm, are scaled to compensate for both.

    Args:
        name: name of the tensor in the checkpoint.
        tensor: the tensor; it is unchanged if it belongs to no head.
        head_dim: d.
        width: D, a multiple of d.
        qk_norm: whether queries and keys have norms.
    """
    index_d = _wide_index(head_dim, width)
    if _NORMS.search(name):
        scale = (head_dim / width) ** 0.5 if "q_norm" in name else 1.0
        return tensor.new_zeros(width).index_copy(0, index_d, tensor * scale)
    if _ROWS.search(name):
        out = tensor.reshape(-1, head_dim, *tensor.shape[1:])
        if "q_proj" in name and not qk_norm:
            out = out * (width / head_dim) ** 0.5
        wide = out.new_zeros(out.shape[0], width, *out.shape[2:]).index_copy(1, index_d, out)
        return wide.reshape(-1, *tensor.shape[1:])
    if _COLUMNS.search(name):
        out = tensor.reshape(tensor.shape[0], -1, head_dim)
        wide = out.new_zeros(*out.shape[:2], width).index_copy(2, index_d, out)
        return wide.reshape(tensor.shape[0], -1)
    return tensor


def _wide_index(head_dim: int, width: int) -> Tensor:
    """(d,) index of each dimension of a head in the wider head."""
    half = torch.arange(head_dim // 2) * (width // head_dim)
    return torch.cat([half, half + width // 2])


_HEAD = "lm_head.weight"
_EMBEDDINGS = ("model.embed_tokens", "model.decoder.embed_tokens", "transformer.wte")
_HEADLESS = ("gemma2",)
"""Architectures without a separate head in vLLM 0.32."""


def export_checkpoint(source: Path, target: Path, *, width: int | None, untie: bool) -> None:
    """Copy a checkpoint in the hub's format.

    Args:
        source: folder with ``config.json``, the tokenizer and safetensors files.
        target: folder to write; files of the same name are overwritten.
        width: new width of the heads; None: unchanged.
        untie: give a head that is tied to the embedding its own copy. An engine on a CPU packs its
            head once and would keep it when the embedding is reloaded.

    Raises:
        UserError: the folder has no safetensors, or the heads cannot be widened.
    """
    from safetensors.torch import load_file

    target.mkdir(parents=True, exist_ok=True)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    files = sorted(source.glob("*.safetensors"))
    if not files:
        raise UserError(f"{source} holds no safetensors file, which an engine needs")
    tied = config.get("tie_word_embeddings") and config.get("model_type") not in _HEADLESS
    untie = untie and bool(tied)
    for path in files:
        tensors = load_file(path)
        if untie and (name := _embedding(tensors)):
            tensors[_HEAD] = tensors[name].clone()
        if width is not None:
            tensors = _widen_all(tensors, config, width)
        store(tensors, target / path.name)
    for path in source.iterdir():
        if path.is_file() and path.suffix in (".json", ".jinja", ".txt", ".model"):
            shutil.copy(path, target)
    if untie:
        config["tie_word_embeddings"] = False
        _add_to_index(target, source)
    if width is not None:
        config = widen_config(config, width)
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")


def widen_adapter(folder: Path, config: dict[str, Any], width: int) -> None:
    """Widen an adapter in peft's format in place; ``config`` is its base model's."""
    from safetensors.torch import load_file

    path = folder / "adapter_model.safetensors"
    tensors = _widen_all(load_file(path), config, width)
    store(tensors, path)


def _widen_all(tensors: dict[str, Tensor], config: dict[str, Any], width: int) -> dict[str, Tensor]:
    head_dim, qk_norm = head_dim_of(config), config.get("model_type") == "qwen3"
    return {
        name: widen(name, tensor, head_dim=head_dim, width=width, qk_norm=qk_norm).contiguous()
        for name, tensor in tensors.items()
    }


def _embedding(names: Container[str]) -> str | None:
    return next((f"{name}.weight" for name in _EMBEDDINGS if f"{name}.weight" in names), None)


def _add_to_index(target: Path, source: Path) -> None:
    """Add the head's copy to the index of a checkpoint with several files."""
    path = source / "model.safetensors.index.json"
    if path.is_file():
        index = json.loads(path.read_text(encoding="utf-8"))
        if name := _embedding(index["weight_map"]):
            index["weight_map"][_HEAD] = index["weight_map"][name]
        (target / path.name).write_text(json.dumps(index), encoding="utf-8")
