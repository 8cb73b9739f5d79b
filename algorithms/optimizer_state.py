"""The optimiser, and its memory by parameter name: tensors for safetensors, numbers for JSON.

Moments in 8 bits and moments that leave a GPU are bitsandbytes' (its AdamW computes in float32 from
float32 weights, on a CPU too; a gradient may be clipped before the step, which torchao's offloading
optimiser, that copies gradients during the backward pass, does not see).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from coterie.agents.models.shards import gather, shard_as
from coterie.algorithms.settings import LearnerSettings, check_moments
from coterie.datatypes import UserError

_MOMENTS = ("exp_avg", "exp_avg_sq")
_CONSTANT = ("qmap1", "qmap2")
"""The value of each of 256 codes."""


def make_optimizer(parameters: Sequence[nn.Parameter], settings: LearnerSettings) -> Optimizer:
    """AdamW (arXiv:1711.05101), with its moments as the settings want them.

    Raises:
        UserError: the library is not there, or moments should leave a GPU and there is none.
    """
    rates: dict[str, Any] = {
        "lr": settings.lr,
        "betas": settings.betas,
        "weight_decay": settings.weight_decay,
    }
    if settings.moments == "float32":
        return torch.optim.AdamW(parameters, fused=True, **rates)
    check_moments(settings)
    paged = settings.moments.startswith("paged-")
    if paged and parameters[0].device.type != "cuda":
        raise UserError(
            f"--learner.moments {settings.moments} is for a GPU whose memory is full, and this "
            f"model is on {parameters[0].device}: say {settings.moments.removeprefix('paged-')}"
        )
    from bitsandbytes.optim.adamw import AdamW  # pyright: ignore[reportMissingImports]

    return AdamW(
        parameters,
        optim_bits=8 if settings.moments.endswith("8bit") else 32,
        is_paged=paged,
        **rates,
    )


def save_moments(
    optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """The moments themselves (``exp_avg/NAME``, ``exp_avg_sq/NAME``; in 8 bits their codes and each
    block's largest), which the next step changes, and steps by parameter."""
    tensors, steps = {}, {}
    for name, parameter in parameters.items():
        if state := optimizer.state.get(parameter):
            kept = {k: v for k, v in state.items() if k not in ("step", *_CONSTANT)}
            tensors |= gather({f"{kind}/{name}": value for kind, value in kept.items()})
            steps[name] = float(state["step"])
    return tensors, steps


def load_moments(
    optimizer: Optimizer,
    parameters: Mapping[str, nn.Parameter],
    tensors: Mapping[str, Tensor],
    steps: Mapping[str, float],
) -> None:
    """Restore the moments that :func:`save_moments` gave.

    Args:
        optimizer: loses its state.
        parameters: by name.
        tensors: moments as ``exp_avg/NAME``, whole.
        steps: optimizer steps so far, by parameter.
    """
    optimizer.state.clear()
    places = {id(p): i for i, p in enumerate(optimizer.param_groups[0]["params"])}
    for name, step in steps.items():
        parameter = parameters[name]
        if not isinstance(optimizer, torch.optim.AdamW):
            library: Any = optimizer
            library.init_state(library.param_groups[0], parameter, 0, places[id(parameter)])
            state = optimizer.state[parameter]
            for kind in state.keys() - {"step", *_CONSTANT}:
                state[kind].copy_(tensors[f"{kind}/{name}"])
            state["step"] = int(step)
            continue
        moments = {
            moment: shard_as(tensors[f"{moment}/{name}"], parameter).to(
                parameter.device, parameter.dtype, copy=True
            )
            for moment in _MOMENTS
        }
        # The fused optimiser keeps its counter beside the parameter.
        count = torch.tensor(step, dtype=torch.float32, device=parameter.device)
        optimizer.state[parameter] = {"step": count, **moments}


def reached(optimizer: Optimizer, parameter: nn.Parameter) -> Tensor | None:
    """Which numbers of ``parameter`` a gradient has reached so far; None before the first step."""
    state = optimizer.state.get(parameter)
    if not state:
        return None
    moment = state.get("exp_avg", state.get("state1"))
    return (state["qmap1"][moment.int()] if "qmap1" in state else moment) != 0


@contextmanager
def swap(parameters: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> Iterator[None]:
    """While open, those of ``parameters`` that ``values`` has hold these, and ``values`` theirs.
    For forward passes only."""
    _exchange(parameters, values)
    try:
        yield
    finally:
        _exchange(parameters, values)


@torch.no_grad()
def _exchange(parameters: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> None:
    # In place: what lies in shards is gathered from where it lay at first.
    for name, value in values.items():
        before = parameters[name].detach().clone()
        parameters[name].copy_(value)
        value.copy_(before)
