"""The optimizer, and its state by parameter name: tensors for safetensors, numbers for JSON.

8-bit moments and moments in main memory come from bitsandbytes. Its AdamW computes in float32 from
float32 weights, on CPUs too. torchao's offloading optimizer is no alternative: it copies gradients
during the backward pass, before they can be clipped.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from coterie.agents.models.shards import gather, shard_as
from coterie.algorithms.settings import LearnerSettings, check_moments

_MOMENTS = ("exp_avg", "exp_avg_sq")
_CONSTANT = ("qmap1", "qmap2")
"""Tables with the value of each of the 256 codes, which never change."""


def make_optimizer(parameters: Sequence[nn.Parameter], settings: LearnerSettings) -> Optimizer:
    """Create AdamW (arXiv:1711.05101) with moments in the format of the settings.

    Raises:
        UserError: bitsandbytes is missing, or paged moments are set without a GPU.
    """
    rates: dict[str, Any] = {
        "lr": settings.lr,
        "betas": settings.betas,
        "weight_decay": settings.weight_decay,
    }
    if settings.moments == "float32":
        return torch.optim.AdamW(parameters, fused=True, **rates)
    check_moments(settings, parameters[0].device.type)
    from bitsandbytes.optim.adamw import AdamW  # pyright: ignore[reportMissingImports]

    return AdamW(
        parameters,
        optim_bits=8 if settings.moments.endswith("8bit") else 32,
        is_paged=settings.moments.startswith("paged-"),
        **rates,
    )


def save_moments(
    optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Return the moments (``exp_avg/NAME``, ``exp_avg_sq/NAME``; in 8 bits the codes and the
    largest value of each block) and the steps by parameter. The moments are not copied: the next
    step changes them."""
    tensors, steps = {}, {}
    for name, parameter in parameters.items():
        if state := optimizer.state.get(parameter):
            moments = {k: v for k, v in state.items() if k not in ("step", *_CONSTANT)}
            tensors |= gather({f"{kind}/{name}": value for kind, value in moments.items()})
            steps[name] = float(state["step"])
    return tensors, steps


def load_moments(
    optimizer: Optimizer,
    parameters: Mapping[str, nn.Parameter],
    tensors: Mapping[str, Tensor],
    steps: Mapping[str, float],
) -> None:
    """Restore the moments that :func:`save_moments` returned.

    Args:
        optimizer: its state is replaced.
        parameters: by name.
        tensors: moments as ``exp_avg/NAME``, not sharded.
        steps: optimizer steps so far, by parameter.
    """
    optimizer.state.clear()
    if not isinstance(optimizer, torch.optim.AdamW):
        _load_into_bitsandbytes(optimizer, parameters, tensors, steps)
        return
    for name, step in steps.items():
        parameter = parameters[name]
        moments = {
            moment: shard_as(tensors[f"{moment}/{name}"], parameter).to(
                parameter.device, parameter.dtype, copy=True
            )
            for moment in _MOMENTS
        }
        # The fused optimizer wants its counter on the parameter's device.
        count = torch.tensor(step, dtype=torch.float32, device=parameter.device)
        optimizer.state[parameter] = {"step": count, **moments}


def _load_into_bitsandbytes(
    optimizer: Any,
    parameters: Mapping[str, nn.Parameter],
    tensors: Mapping[str, Tensor],
    steps: Mapping[str, float],
) -> None:
    [group] = optimizer.param_groups
    indices = {id(p): i for i, p in enumerate(group["params"])}
    for name, step in steps.items():
        parameter = parameters[name]
        optimizer.init_state(group, parameter, 0, indices[id(parameter)])
        state = optimizer.state[parameter]
        for kind in state.keys() - {"step", *_CONSTANT}:
            state[kind].copy_(tensors[f"{kind}/{name}"])
        state["step"] = int(step)


def reached(optimizer: Optimizer, parameter: nn.Parameter) -> Tensor | None:
    """Return a mask of the weights that a gradient has reached so far; None before the first
    step."""
    state = optimizer.state.get(parameter)
    if not state:
        return None
    moment = state.get("exp_avg", state.get("state1"))
    return (state["qmap1"][moment.int()] if "qmap1" in state else moment) != 0


@contextmanager
def swap(parameters: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> Iterator[None]:
    """Exchange ``values`` with the parameters of the same names inside the block, for forward
    passes only."""
    _exchange(parameters, values)
    try:
        yield
    finally:
        _exchange(parameters, values)


@torch.no_grad()
def _exchange(parameters: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> None:
    # In place, because sharded weights are gathered from their original storage.
    for name, value in values.items():
        before = parameters[name].detach().clone()
        parameters[name].copy_(value)
        value.copy_(before)
