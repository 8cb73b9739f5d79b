"""An adapted layer in 16 bits: what peft computes in float32, to the rounding of the format."""

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from coterie.agents.models.lora import compute_in_one_format

B, T, WIDE, RANK = 30, 5, 64, 8


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(WIDE, 2 * WIDE, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x)


def adapted(dtype: torch.dtype, **settings: Any) -> Any:
    """The same numbers whatever the format: those of bfloat16."""
    torch.manual_seed(0)
    plain = Plain().to(torch.bfloat16).to(dtype)
    config = LoraConfig(r=RANK, lora_alpha=24, target_modules=["proj"], **settings)
    model = get_peft_model(plain, config)
    for name, weight in model.named_parameters():
        if ".lora_" in name:
            weight.data = (
                torch.randn(weight.shape, generator=torch.manual_seed(1)).bfloat16().float() / 8
            )
            weight.data = weight.data.to(torch.float64 if dtype == torch.float64 else torch.float32)
    return model


def run(model: Any, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The output, and the gradients of the adapter and the input of half its square."""
    x = x.clone().requires_grad_()
    y = model(x)
    (0.5 * y.double().square().sum()).backward()
    own = [weight.grad for name, weight in model.named_parameters() if ".lora_" in name]
    assert x.grad is not None
    return y.detach(), [*own, x.grad]


def inputs(dtype: torch.dtype) -> Tensor:
    return torch.randn(B, T, WIDE, generator=torch.manual_seed(2)).bfloat16().to(dtype)


def test_is_as_near_to_exact_numbers_as_an_adapter_in_float32() -> None:
    exact, exact_grads = run(adapted(torch.float64), inputs(torch.float64))
    by_peft, ours = adapted(torch.bfloat16), adapted(torch.bfloat16)
    compute_in_one_format(ours)
    results = [run(model, inputs(torch.bfloat16)) for model in (by_peft, ours)]
    assert results[1][0].dtype == torch.bfloat16

    def error(got: Tensor, true: Tensor) -> float:
        return float((got.double() - true).norm() / true.norm())

    for place, true in enumerate([exact, *exact_grads]):
        theirs, mine = (error([y, *grads][place], true) for y, grads in results)
        assert mine < max(1.5 * theirs, 2**-8), place
    # What learns is held, and its gradient arrives, in float32.
    assert {grad.dtype for grad in results[1][1][:-1]} == {torch.float32}


class _Wide(TorchDispatchMode):
    """Counts results in float32 that are as large as the layer's input."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        wide = isinstance(out, Tensor) and out.numel() >= B * T * WIDE
        self.count += wide and out.dtype == torch.float32
        return out


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "peft"])
def test_nothing_as_wide_as_the_layer_is_cast_to_float32(ours: bool) -> None:
    model = adapted(torch.bfloat16)
    if ours:
        compute_in_one_format(model)
    x = inputs(torch.bfloat16)
    with _Wide() as wide:
        model(x)
    assert (wide.count == 0) == ours


@pytest.mark.parametrize(
    "case", ["float32", "two adapters", "disabled", "merged", "dropout", "bias"]
)
def test_everything_else_is_left_to_peft(case: str) -> None:
    dtype = torch.float32 if case == "float32" else torch.bfloat16
    more = (
        {"lora_dropout": 0.5}
        if case == "dropout"
        else {"lora_bias": True}
        if case == "bias"
        else {}
    )

    def output(ours: bool) -> Tensor:
        model = adapted(dtype, **more)
        if case == "two adapters":
            torch.manual_seed(3)
            model.add_adapter("second", LoraConfig(r=2, target_modules=["proj"]))
            model.base_model.set_adapter(["default", "second"])
        if ours:
            compute_in_one_format(model)
        if case == "merged":
            model.merge_adapter()
        torch.manual_seed(4)
        if case == "disabled":
            with model.disable_adapter():
                return model(inputs(dtype))
        return model(inputs(dtype))

    assert torch.equal(output(True), output(False))
