"""Frozen weights in 8 bits, for processors that multiply small integers faster than float32.

Each output of a layer has a row of codes of 8 bits and a scale. A row of activations is rounded
in the same way before it is multiplied (vector-wise quantization, arXiv:2208.07339), and so is a
gradient in the backward pass (SwitchBack, arXiv:2304.13013). Sums of products of codes are exact
integers, so the result of a row does not depend on the rows beside it. Adapters stay in float32.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from coterie.datatypes import UserError

# N rows of activations, I inputs, O outputs

_LARGEST = 127
_SMALLEST = 1e-30
"""Scale of a row of zeros, which cannot be divided by 0."""


def integer_product(a_NK: Tensor, b_KM: Tensor) -> Tensor:
    """Return the product (N, M) of codes, in int32."""
    return torch.ops.aten._int_mm(a_NK, b_KM)


def round_rows(x_NI: Tensor) -> tuple[Tensor, Tensor]:
    """Return codes (N, I) in int8 and scales (N, 1) in float32; their products approximate
    ``x_NI``, each row within half of its scale."""
    # Ten times as fast as the maximum norm.
    largest_N1 = torch.maximum(x_NI.amax(-1, keepdim=True), x_NI.amin(-1, keepdim=True).neg_())
    scale_N1 = largest_N1.div_(_LARGEST).clamp_(min=_SMALLEST)
    return torch.mul(x_NI, scale_N1.reciprocal()).round_().to(torch.int8), scale_N1


def multiply(x_NI: Tensor, codes_OI: Tensor, scale_O: Tensor) -> Tensor:
    """Return the product (N, O) of the rounded ``x_NI`` and the weights, in float32."""
    rounded_NI, scale_N1 = round_rows(x_NI)
    # Five times as fast as a product of integers and floats.
    return integer_product(rounded_NI, codes_OI.t()).float().mul_(scale_N1).mul_(scale_O)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, codes_OI: Tensor, scale_O: Tensor) -> Tensor:
        ctx.weight = codes_OI, scale_O  # frozen, so they may be kept without a version check
        return multiply(x.flatten(0, -2), codes_OI, scale_O).view(*x.shape[:-1], len(codes_OI))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore
        codes_OI, scale_O = ctx.weight
        rounded_NO, scale_N1 = round_rows(grad.flatten(0, -2) * scale_O)
        grad_x = integer_product(rounded_NO, codes_OI).float().mul_(scale_N1)
        return grad_x.view(*grad.shape[:-1], codes_OI.shape[1]), None, None


class Int8Linear(nn.Linear):
    """A frozen linear layer whose ``weight`` holds codes."""

    scale_O: Tensor

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        outputs, inputs = weight_OI.shape
        super().__init__(inputs, outputs, bias=bias_O is not None, device="meta")
        codes_OI, scale_O1 = round_rows(weight_OI.detach().float())
        self.weight = nn.Parameter(codes_OI, requires_grad=False)
        self.register_buffer("scale_O", scale_O1[:, 0])
        if bias_O is not None:
            self.bias = nn.Parameter(bias_O.detach().float(), requires_grad=False)

    def forward(self, input: Tensor) -> Tensor:
        y: Any = _Product.apply(input, self.weight, self.scale_O)
        return y if self.bias is None else y + self.bias

    def float_weight(self) -> Tensor:
        """Return the weights (O, I) for which the codes stand, in float32."""
        return self.weight * self.scale_O[:, None]


def check_kernel(device: torch.device) -> None:
    """Refuse a device on which torch does not multiply codes exactly. Processors without an
    instruction for it add pairs of products in 16 bits, which overflow.

    Raises:
        UserError: it is no CPU, or there is no exact kernel.
    """
    codes = torch.full((32, 64), _LARGEST, dtype=torch.int8)
    codes[::2] = -_LARGEST
    exact = codes.long() @ codes.long().t()
    try:
        product = integer_product(codes, codes.t())
    except (RuntimeError, AttributeError):
        product = torch.zeros(1)
    if device.type != "cpu" or not torch.equal(product.long(), exact):
        raise UserError(
            f"torch has no 8-bit kernel that works on {device}: say --agents.ROLE.dtype float32"
        )


def quantize(module: nn.Module, layers: Iterable[tuple[str, nn.Linear]]) -> None:
    """Replace linear layers of ``module`` and its head by layers in 8 bits. The embedding stays as
    it is, even if the head was tied to it.

    Args:
        module: a transformers model.
        layers: (name, layer) of all but the head.

    Raises:
        UserError: there is no such layer.
    """
    chosen: list[tuple[str, Any]] = [*layers]
    if not chosen:
        raise UserError(
            f"{type(module).__name__} has no linear layer that int8 can hold: say "
            "--agents.ROLE.dtype float32"
        )
    head: Any = module.get_output_embeddings()  # type: ignore[operator]
    chosen += [(name, part) for name, part in module.named_modules() if part is head]
    for name, layer in chosen:
        module.set_submodule(name, Int8Linear(layer.weight, layer.bias).train(layer.training))


def stored_bytes(weight_OI: Tensor) -> int:
    """Return the bytes of a matrix of this shape: 8 bits a weight, and a scale for each output."""
    return weight_OI.numel() + 4 * len(weight_OI)
