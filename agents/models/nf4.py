"""Frozen weights in 4 bits: NormalFloat with double quantization (QLoRA, arXiv:2305.14314).

bitsandbytes stores a matrix as codes of 4 bits. Each block of 64 codes has a largest value in 8
bits, and each 256 of these have one in float32. A forward or backward pass restores a matrix in the
format of the computation, so adapters on it learn as on any base.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from coterie.datatypes import UserError

# bitsandbytes warns at its import that a kernel for single tokens is missing, which is not used.
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)

BLOCK = 64
"""Weights with a common largest value."""
_OUTER = 256
"""Blocks whose largest values have a common scale."""
_ERROR = 0.2
"""Largest relative error of random weights; that of NormalFloat is 0.1."""


def check_kernel(device: torch.device, dtype: torch.dtype) -> None:
    """Refuse a device on which bitsandbytes does not compute with 4-bit weights.

    Raises:
        UserError: a forward or a backward pass fails or is wrong.
    """
    generator = torch.Generator().manual_seed(0)
    weight_OI = torch.randn(BLOCK, BLOCK, generator=generator).to(device, dtype)
    plain = nn.Linear(BLOCK, BLOCK, bias=False, device="meta")
    plain.weight = nn.Parameter(weight_OI, requires_grad=False)
    x = torch.eye(BLOCK, device=device, dtype=dtype).requires_grad_()
    try:
        y = _quantized(plain, device)(x)
        y.sum().backward()
        works = _agree(y.t(), weight_OI) and _agree(x.grad, weight_OI.sum(0).expand_as(weight_OI))
        why = "its result is wrong"
    except Exception as error:
        # A missing library, kernel or driver has no error class of its own.
        works, why = False, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if not works:
        raise UserError(
            f"bitsandbytes has no 4-bit kernel that works on {device} ({why}): leave out "
            "--agents.ROLE.dtype nf4"
        )


def quantize(
    module: nn.Module, layers: Iterable[tuple[str, nn.Linear]], device: torch.device
) -> None:
    """Quantize linear layers of ``module``, and move these to ``device``.

    A layer whose inputs are no multiple of 64 stays as it is: its blocks would span two rows, which
    the kernel for CPUs computes wrongly.

    Args:
        module: a transformers model.
        layers: (name, layer) of the layers.
        device: where its weights will be.

    Raises:
        UserError: there is no layer that can be quantized.
    """
    chosen = [*quantizable(layers)]
    if not chosen:
        kind = type(module).__name__
        raise UserError(
            f"{kind} has no linear layer that nf4 can hold: leave out --agents.ROLE.dtype nf4"
        )
    for name, layer in chosen:
        module.set_submodule(name, _quantized(layer, device))


def quantizable(
    layers: Iterable[tuple[str, nn.Linear]],
) -> Iterator[tuple[str, nn.Linear]]:
    """Yield those of ``layers``, (name, layer), that :func:`quantize` changes."""
    return ((name, layer) for name, layer in layers if layer.in_features % BLOCK == 0)


def stored_bytes(weights: int) -> int:
    """Return the bytes of a matrix of this many weights: 4.127 bits for each."""
    return weights // 2 + weights // BLOCK + 4 * weights // (BLOCK * _OUTER)


def _quantized(layer: nn.Linear, device: torch.device) -> nn.Module:
    import bitsandbytes.nn  # pyright: ignore[reportMissingImports]

    library: Any = bitsandbytes.nn
    new = library.Linear4bit(
        layer.in_features,
        layer.out_features,
        bias=layer.bias is not None,
        compute_dtype=layer.weight.dtype,
        quant_type="nf4",
        device="meta",
    )
    new.weight = library.Params4bit(
        layer.weight.data,
        requires_grad=False,
        blocksize=BLOCK,
        compress_statistics=True,
        quant_type="nf4",
        module=new,
    )
    if layer.bias is not None:
        new.bias = nn.Parameter(layer.bias.data, requires_grad=False)
    # On processors with avx512_bf16 a forward pass without gradients would repack the codes with
    # rounded scales. The weights would depend on what was computed before, and not learn after.
    new.support_avx512bf16_for_cpu = False
    return new.to(device).train(layer.training)


def _agree(ours: Tensor | None, theirs: Tensor) -> bool:
    if ours is None:
        return False
    return bool((ours.float() - theirs.float()).norm() <= _ERROR * theirs.float().norm())
