"""Weights that are held in codes of 4 or 8 bits: their number and their values."""

from collections.abc import Iterator
from math import prod
from typing import Any

from torch import Tensor, nn

from coterie.agents.models.int8 import Int8Linear


def count(weight: Tensor) -> int:
    """Return the number of weights in a parameter, which may hold codes."""
    state = getattr(weight, "quant_state", None)
    return weight.numel() if state is None else prod(state.shape)


def dequantized(layer: Any) -> Tensor:
    """Return the weight of a linear layer, which may have adapters, in the format that it had
    before it was quantized."""
    layer = getattr(layer, "base_layer", layer)
    if isinstance(layer, Int8Linear):
        return layer.float_weight()
    state = getattr(layer.weight, "quant_state", None)
    if state is None:
        return layer.weight
    from bitsandbytes.functional import dequantize_4bit  # pyright: ignore[reportMissingImports]

    return dequantize_4bit(layer.weight.data, state)


def plain_state(module: nn.Module) -> dict[str, Tensor]:
    """Return the state of a transformers model with dequantized weights instead of codes and
    scales. A head that was tied to the embedding is left out."""
    state = module.state_dict()
    head: Any = module.get_output_embeddings()  # type: ignore[operator]
    tied = getattr(module.config.get_text_config(), "tie_word_embeddings", False)  # type: ignore[union-attr]
    for name, part in module.named_modules():
        if f"{name}.weight" not in state:
            continue
        if isinstance(part, Int8Linear):
            del state[f"{name}.scale_O"]
            if part is head and tied:
                del state[f"{name}.weight"]
                continue
        elif getattr(part.weight, "quant_state", None) is None or hasattr(part, "base_layer"):
            continue
        state = {key: t for key, t in state.items() if not key.startswith(f"{name}.weight.")}
        state[f"{name}.weight"] = dequantized(part)
    return state


def free(module: nn.Module) -> None:
    """Free all weights of ``module``, which may hold codes: they keep their shapes only."""
    layers: Iterator[Any] = module.modules()
    for layer in layers:
        weight = layer._parameters.get("weight")
        if getattr(weight, "quant_state", None) is not None:
            # torch cannot make a parameter of this class on the meta device.
            layer.weight = nn.Parameter(weight.data.to("meta"), requires_grad=False)
            layer.quant_state = None
    module.to("meta")
