"""LoRA adapters on a model: which layers get them, and how adapted layers compute."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from coterie.agents.models.damage import check_sums, in_one_sentence
from coterie.agents.models.handle import load_adapter
from coterie.agents.models.spec import ALL_LINEAR, LoraSpec
from coterie.datatypes import UserError, user_path

# Layers that fuse several projections in one matrix, and these projections.
_FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}


_USUAL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
# State-space models, by their configurations, and layers there whose weights are read past their
# forward pass, where an adapter would not be seen.
_STATE = ("state_size", "mamba_d_state", "ssm_state_size")
_BYPASSED = frozenset({"x_proj", "dt_proj", "out_proj"})


def resolve_targets(module: nn.Module, targets: tuple[str, ...]) -> list[str]:
    """The names that a model gives to the linear layers that get an adapter.

    Args:
        module: a transformers model.
        targets: wanted layers, or ``all-linear``: all but the head; none: the seven of Llama where
            the model has all of them, else ``all-linear``.

    Raises:
        UserError: the model lacks a layer, or only a part of a fused layer is named.
    """
    linear = {name.rsplit(".", 1)[-1] for name in _linear_layers(module)}
    if not targets:
        named, missing = _with_fused(linear, _USUAL)
        return sorted(linear) if missing else named
    if targets == (ALL_LINEAR,):
        return sorted(linear)
    names, missing = _with_fused(linear, targets)
    if missing:
        raise UserError(
            f"LoRA targets {', '.join(sorted(missing))} are not linear layers of this model; it "
            f"has {', '.join(sorted(linear)) or 'none: say --agents.ROLE.tuning full'}"
        )
    return names


def _linear_layers(module: nn.Module) -> Iterator[str]:
    """The name of every linear layer that can bear an adapter."""
    config: Any = module.config
    stateful = any(hasattr(config, name) for name in _STATE)
    head: Any = module.get_output_embeddings()  # type: ignore[operator]
    for name, part in module.named_modules():
        # A layer that already bears adapters keeps its own matrix in `base_layer`.
        name = name.removesuffix(".base_layer")
        bypassed = stateful and name.rsplit(".", 1)[-1] in _BYPASSED
        linear = isinstance(part, nn.Linear | Conv1D) and ".lora_" not in name
        if linear and not bypassed and part is not head:
            yield name


def _with_fused(linear: set[str], wanted: tuple[str, ...]) -> tuple[list[str], set[str]]:
    """The names of ``wanted`` layers, with fused ones in place of all of their parts; and those
    that are missing."""
    names = [t for t in wanted if t in linear]
    missing = set(wanted) - set(names)
    for fused, parts in _FUSED.items():
        inside = missing & set(parts)
        if fused not in linear or not inside:
            continue
        if inside != set(parts):
            raise UserError(
                f"LoRA targets name {', '.join(sorted(inside))}, but this model fuses "
                f"{', '.join(parts)} into {fused}: name all of them, or {fused}"
            )
        names.append(fused)
        missing -= inside
    return names, missing


def add_adapter(module: Any, name: str, spec: LoraSpec, seed: int) -> Any:
    """``module`` with a new adapter (arXiv:2106.09685). A plain model is wrapped; a peft model gets
    one more adapter.

    Args:
        module: a transformers model, or one of peft's.
        name: of the adapter; unique on the model.
        spec: its rank and layers, or the folder of the adapter that is loaded.
        seed: of A in a new adapter; its B is 0, so that it is the identity.

    Raises:
        UserError: the model cannot bear it, or the folder's adapter does not fit.
    """
    from peft import LoraConfig, PeftModel, get_peft_model

    base: Any = module.get_base_model() if isinstance(module, PeftModel) else module
    if spec.adapter is None:
        config = LoraConfig(
            task_type="CAUSAL_LM",
            r=spec.rank,
            lora_alpha=spec.alpha,  # type: ignore[arg-type]
            lora_dropout=0.0,
            target_modules=resolve_targets(base, spec.targets),
            fan_in_fan_out=any(isinstance(part, Conv1D) for part in base.modules()),
        )
    else:
        with in_one_sentence(f"{spec.adapter}/adapter_config.json cannot be used"):
            config = LoraConfig.from_pretrained(spec.adapter)
        if not isinstance(config, LoraConfig):
            raise UserError(f"{spec.adapter} is not a LoRA adapter but of type {config.peft_type}")
        config.inference_mode = False
        config.lora_dropout = 0.0
    if not config.base_model_name_or_path and base.name_or_path:
        # peft does so for the first adapter on a base only.
        config.base_model_name_or_path = base.name_or_path
    what = (
        f"{spec.adapter or 'LoRA'} cannot be put on a model of type {base.config.model_type!r}: "
        "name other --agents.ROLE.lora-targets, or say --agents.ROLE.tuning full"
    )
    with torch.random.fork_rng(devices=[]), in_one_sentence(what):
        torch.manual_seed(seed)
        if isinstance(module, PeftModel):
            module.add_adapter(name, config)
        else:
            module = get_peft_model(module, config, adapter_name=name)
    if spec.adapter is not None:
        check_sums(user_path(spec.adapter))
        load_adapter(module, user_path(spec.adapter), name)
    compute_in_one_format(module)
    return module.eval()


def compute_in_one_format(module: nn.Module) -> None:
    """Have adapted layers of ``module`` that are plain ones compute in their input's format.

    In 16 bits peft casts the layer's input to the adapter's float32, multiplies there, and scales,
    adds and casts results as wide as the layer's: six passes over memory for a product of rank 16.
    Here the adapter is rounded to the format of its input, as automatic mixed precision does, and
    is added within a matrix product. What learns stays float32: gradients arrive in it.
    """
    from peft.tuners.lora.layer import Linear

    for layer in module.modules():
        if type(layer) is Linear and "forward" not in vars(layer):
            layer.forward = _forward(layer, layer.forward)


def _forward(layer: Any, plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    # I and O width of the layer's input and output, R rank
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
