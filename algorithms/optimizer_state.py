"""An optimiser's memory by parameter name: tensors for safetensors, numbers for JSON."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_MOMENTS = ("exp_avg", "exp_avg_sq")


def save_moments(
    optimizer: torch.optim.AdamW, parameters: Mapping[str, nn.Parameter]
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Copies of the moments (``exp_avg/NAME``, ``exp_avg_sq/NAME``), and steps by parameter."""
    tensors, steps = {}, {}
    for name, parameter in parameters.items():
        if state := optimizer.state.get(parameter):
            tensors |= {f"{moment}/{name}": state[moment].clone() for moment in _MOMENTS}
            steps[name] = float(state["step"])
    return tensors, steps


def load_moments(
    optimizer: torch.optim.AdamW,
    parameters: Mapping[str, nn.Parameter],
    tensors: Mapping[str, Tensor],
    steps: Mapping[str, float],
) -> None:
    """Restore what :func:`save_moments` gave."""
    optimizer.state.clear()
    for name, step in steps.items():
        parameter = parameters[name]
        moments = {
            moment: tensors[f"{moment}/{name}"].to(parameter.device, parameter.dtype, copy=True)
            for moment in _MOMENTS
        }
        # The fused optimiser keeps its counter beside the parameter.
        count = torch.tensor(step, dtype=torch.float32, device=parameter.device)
        optimizer.state[parameter] = {"step": count, **moments}


@contextmanager
def swap(parameters: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> Iterator[None]:
    """While open, those of ``parameters`` that ``values`` has hold these. For forward passes
    only."""
    kept = {name: parameters[name].data for name in values}
    try:
        for name, value in values.items():
            parameters[name].data = value
        yield
    finally:
        for name, value in kept.items():
            parameters[name].data = value
