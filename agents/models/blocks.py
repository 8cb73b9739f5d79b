"""Decoder blocks that compute in another number format than that of their weights.

Full weights learn in float32, as do AdamW's moments: near 0.02, neighbouring bfloat16 numbers
differ by 1.2e-4, so an update of 1e-6 would be lost. Such weights can still compute in bfloat16.
Each part (a decoder block, the last norm, the head) rounds its weights at every call, so without a
backward pass at most one part exists twice; gradients arrive in float32. This is the arithmetic of
FSDP2's mixed precision (arXiv:2304.11277), without a process group and on plain parameters.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from coterie.agents.models.heap import return_freed_memory
from coterie.datatypes import UserError


def parts(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules that a decoder runs in sequence: its blocks, and those around them."""
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        elif any(isinstance(inner, nn.ModuleList) for inner in child.modules()):
            yield from parts(child)
        else:
            yield child


def blocks(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the decoder's blocks, without embedding, last norm and head."""
    for child in module.children():
        yield from child if isinstance(child, nn.ModuleList) else blocks(child)


class Recomputation:
    """Activation checkpointing: the backward pass computes each block again from its inputs
    (arXiv:1604.06174). Blocks are deterministic, so gradients do not change by a bit.

    On a CPU the C library hardly uses again what a block has freed around the inputs that stay, so
    a process grew as if nothing were recomputed. What is free goes back before each block.
    """

    def __init__(self, model: nn.Module) -> None:
        self.on = False
        """Whether forward passes that begin now recompute."""
        self.within: Callable[[], AbstractContextManager[None]] = nullcontext
        """The context of the second computation."""
        for block in blocks(model):
            block.forward = self._optional(block.forward)

    def _optional(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def compute(states: Tensor, *args: Any, **kwargs: Any) -> Any:
            if states.device.type == "cpu":
                return_freed_memory()
            return plain(states, *args, **kwargs)

        def forward(*args: Any, **kwargs: Any) -> Any:
            if not (self.on and torch.is_grad_enabled()):
                return plain(*args, **kwargs)
            within = self.within
            return checkpoint(
                compute,
                *args,
                use_reentrant=False,
                preserve_rng_state=False,
                context_fn=lambda: (nullcontext(), within()),
                **kwargs,
            )

        return forward


def compute_in(model: nn.Module, dtype: torch.dtype) -> None:
    """Make ``model`` compute in ``dtype``, whatever the format of its weights.

    Raises:
        UserError: some weights belong to no part.
    """
    computing = [part for part in parts(model) if any(True for _ in part.parameters())]
    covered = {id(weight) for part in computing for weight in part.parameters()}
    if any(id(weight) not in covered for weight in model.parameters()):
        kind = str(dtype).rpartition(".")[2]
        raise UserError(
            f"{type(model).__name__} has weights outside of its blocks and cannot hold float32 and "
            f"compute in {kind}: say --agents.ROLE.dtype float32, or --agents.ROLE.tuning lora"
        )
    for part in computing:
        if type(part) is nn.Embedding:
            # Only rows that are looked up are rounded; gradients add up in float32.
            part.register_forward_hook(lambda _, __, rows: rows.to(dtype))
        else:
            # `rounded` is found again even if another wrapper replaces `forward`.
            rounded: Any = _Rounded(part, dtype)
            part.rounded = part.forward = rounded


@contextmanager
def rounded_once(model: nn.Module) -> Iterator[None]:
    """Round the weights of a model that :func:`compute_in` has changed only once inside the block,
    in which they must not change. Needs memory for a copy of all weights."""
    copies: dict[int, Tensor] = {}  # by identity: tied weights are one tensor
    with ExitStack() as stack:
        for part in parts(model):
            if (rounded := getattr(part, "rounded", None)) is not None:
                stack.enter_context(rounded.once(copies))
        yield


class _Rounded:
    """The forward pass of ``part``, with weights rounded for each call."""

    def __init__(self, part: nn.Module, dtype: torch.dtype) -> None:
        self._shell, self._dtype = nn.Module(), dtype
        self._shell.part, self._shell.forward = part, part.forward
        self._copies: dict[int, Tensor] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        copies = {} if self._copies is None else self._copies
        weights = {name: self._round(w, copies) for name, w in self._shell.named_parameters()}
        return functional_call(self._shell, weights, args, kwargs)

    @contextmanager
    def once(self, copies: dict[int, Tensor]) -> Iterator[None]:
        """Share ``copies``, id of a weight -> its rounded copy, between calls inside the block."""
        self._copies = copies
        try:
            yield
        finally:
            self._copies = None

    def _round(self, weight: Tensor, copies: dict[int, Tensor]) -> Tensor:
        if id(weight) not in copies:
            copies[id(weight)] = weight.to(self._dtype)
        return copies[id(weight)]
