"""Checkpoints and adapters in the form that an engine reads them."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agents.engine.widen import head_dim_of, widen, widen_config
from models.saving import store
from vocabulary import UserError

_HEAD, _EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def export_checkpoint(
    source: Path,
    target: Path,
    *,
    width: int | None,
    untie: bool,
    dtype: torch.dtype | None = None,
) -> None:
    """Copy a checkpoint in the hub's format.

    Args:
        source: folder with ``config.json``, the tokenizer and safetensors files.
        target: folder to write; files of the same name are overwritten.
        width: dimensions that heads are widened to; None: as they are.
        untie: give a head that is tied to the embedding its own copy. An engine on a CPU packs its
            head once, and would go on with that when the embedding is loaded anew.
        dtype: what weights are rounded to; None: as they are.

    Raises:
        UserError: the folder holds no safetensors, or heads that cannot be widened.
    """
    from safetensors.torch import load_file

    target.mkdir(parents=True, exist_ok=True)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    files = sorted(source.glob("*.safetensors"))
    if not files:
        raise UserError(f"{source} holds no safetensors file, which an engine needs")
    untie = untie and bool(config.get("tie_word_embeddings"))
    for path in files:
        tensors = load_file(path)
        if untie and _EMBEDDING in tensors:
            tensors[_HEAD] = tensors[_EMBEDDING].clone()
        if width is not None:
            tensors = _widened(tensors, config, width)
        if dtype is not None:
            tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
        store(tensors, target / path.name)
    for path in source.iterdir():
        if path.is_file() and path.suffix in (".json", ".jinja", ".txt", ".model"):
            shutil.copy(path, target)
    if untie:
        config["tie_word_embeddings"] = False
        _add_to_index(target, source)
    if width is not None:
        config = widen_config(config, width)
    if dtype is not None:
        config["dtype"] = str(dtype).rpartition(".")[2]
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")


def widen_adapter(folder: Path, config: dict[str, Any], width: int) -> None:
    """Widen an adapter in peft's format in place; ``config`` is its base model's."""
    from safetensors.torch import load_file

    path = folder / "adapter_model.safetensors"
    tensors = _widened(load_file(path), config, width)
    store(tensors, path)


def _widened(tensors: dict[str, Tensor], config: dict[str, Any], width: int) -> dict[str, Tensor]:
    head_dim, qk_norm = head_dim_of(config), config.get("model_type") == "qwen3"
    return {
        name: widen(name, tensor, head_dim=head_dim, width=width, qk_norm=qk_norm).contiguous()
        for name, tensor in tensors.items()
    }


def _add_to_index(target: Path, source: Path) -> None:
    """Name the head's own copy in the index of a checkpoint that has several files."""
    path = source / "model.safetensors.index.json"
    if path.is_file():
        index = json.loads(path.read_text(encoding="utf-8"))
        index["weight_map"][_HEAD] = index["weight_map"][_EMBEDDING]
        (target / path.name).write_text(json.dumps(index), encoding="utf-8")
