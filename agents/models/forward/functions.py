"""Norm, SwiGLU and rotary embedding with few memory passes, forward and backward.

Legend: S rows of activations, D their width, H heads, E head width, R rotary width.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

# pyright does not know the result types of autograd functions.


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        scale = (x.square().mean(-1, keepdim=True) + eps).rsqrt_()
        unit = x * scale
        ctx.save_for_backward(unit, scale, weight_D)
        return unit * weight_D

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:  # pyright: ignore
        unit, scale, weight_D = ctx.saved_tensors
        along = grad * unit
        grad_weight = None
        if ctx.needs_input_grad[1]:
            grad_weight = along.view(-1, along.shape[-1]).sum(0)
        # The gradient of x / |x| is the part of the incoming gradient orthogonal to x.
        mean = (along @ weight_D).div_(-along.shape[-1])[..., None]
        grad_x = torch.addcmul(grad * weight_D, unit, mean).mul_(scale)
        return grad_x, grad_weight, None


def norm(x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    """Return x / sqrt(mean x^2 + eps) * weight over the last dimension (arXiv:1910.07467)."""
    return _Norm.apply(x, weight_D, eps)  # pyright: ignore[reportReturnType]


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        open_ = F.silu(gate)
        ctx.save_for_backward(gate, up, open_)
        return open_ * up

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore
        gate, up, open_ = ctx.saved_tensors
        return torch.ops.aten.silu_backward(grad * up, gate), grad * open_


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Return silu(gate) * up (SwiGLU, arXiv:2002.05202)."""
    return _SwiGLU.apply(gate, up)  # pyright: ignore[reportReturnType]


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotate(x, cos, sin)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore
        cos, sin = ctx.saved_tensors
        # The transpose of a rotation is its inverse.
        return _rotate(grad, cos, -sin), None, None


def rotate(x_SHE: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply the rotary embedding (arXiv:2104.09864) to pairs (i, i + R/2); cosines and sines are
    (S, 1, R/2)."""
    return _Rotation.apply(x_SHE, cos, sin)  # pyright: ignore[reportReturnType]


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = cos.shape[-1]
    out = torch.empty_like(x)
    first, second = x[..., :half], x[..., half : 2 * half]
    torch.mul(first, cos, out=out[..., :half]).addcmul_(second, sin, value=-1)
    torch.mul(second, cos, out=out[..., half : 2 * half]).addcmul_(first, sin)
    out[..., 2 * half :] = x[..., 2 * half :]
    return out
