"""The forward pass of an adapted layer, where it computes in 16 bits.

peft casts the layer's input to the adapter's float32, multiplies there, and scales, adds and casts
results as wide as the layer's: six passes over memory for a product of rank 16. Here the adapter is
rounded to the format of its input, as automatic mixed precision does, and is added within a matrix
product. What learns stays float32: gradients arrive in it.

Legend: I and O width of the layer's input and output, R rank.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def compute_in_one_format(module: nn.Module) -> None:
    """Have the adapted layers of ``module`` compute so, where they are plain ones."""
    from peft.tuners.lora.layer import Linear

    for layer in module.modules():
        if type(layer) is Linear and "forward" not in vars(layer):
            layer.forward = _forward(layer, layer.forward)


def _forward(layer: Any, plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def forward(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        active = layer.active_adapters
        special = args or kwargs or layer.disable_adapters or layer.merged or len(active) != 1
        if special or x.dtype == torch.float32 or not _is_plain(layer, active[0]):
            return plain(x, *args, **kwargs)
        down_RI, up_OR = (part[active[0]].weight for part in (layer.lora_A, layer.lora_B))
        y = layer.base_layer(x)
        inner = x.flatten(0, -2) @ down_RI.to(x.dtype).t()
        scaled_OR = (up_OR * layer.scaling[active[0]]).to(x.dtype)
        return torch.addmm(y.flatten(0, -2), inner, scaled_OR.t()).view(y.shape)

    return forward


def _is_plain(layer: Any, adapter: str) -> bool:
    """Whether it adds B A x to the layer's output, and nothing else."""
    return (
        adapter in layer.lora_A
        and adapter not in layer.lora_variant
        and not layer.lora_bias.get(adapter)
        and isinstance(layer.lora_dropout[adapter], nn.Identity)
    )
