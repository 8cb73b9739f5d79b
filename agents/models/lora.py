"""LoRA adapters: their layers, and the computation of adapted layers."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from coterie.agents.models.damage import check_sums, in_one_sentence
from coterie.agents.models.handle import load_adapter
from coterie.agents.models.int8 import Int8Linear
from coterie.agents.models.spec import ALL_LINEAR, CHANGE_BASE, LoraSpec
from coterie.datatypes import UserError, user_path

# Layers that fuse several projections in one matrix, and these projections.
_FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}


_USUAL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
# State-space models, by fields of their configurations. They read the weights of some layers
# outside of the layers' forward passes, where an adapter has no effect.
_STATE = ("state_size", "mamba_d_state", "ssm_state_size")
_BYPASSED = frozenset({"x_proj", "dt_proj", "out_proj"})


def resolve_targets(module: nn.Module, targets: tuple[str, ...]) -> list[str]:
    """Return the model's names of the linear layers that get an adapter.

    Args:
        module: a transformers model.
        targets: names of layers, or ``all-linear``: all but the head. Empty: the seven layers of
            Llama if the model has all of them, else ``all-linear``.

    Raises:
        UserError: the model lacks a layer, or ``targets`` names only a part of a fused layer.
    """
    linear = {name.rsplit(".", 1)[-1] for name in linear_layers(module)}
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


def linear_layers(module: nn.Module) -> Iterator[str]:
    """Yield the name of every linear layer that can have an adapter: all but the head and layers
    whose weights are read outside of their forward passes."""
    config: Any = module.config
    stateful = any(hasattr(config, name) for name in _STATE)
    head: Any = module.get_output_embeddings()  # type: ignore[operator]
    for name, part in module.named_modules():
        # A layer with adapters has its own matrix in `base_layer`.
        name = name.removesuffix(".base_layer")
        bypassed = stateful and name.rsplit(".", 1)[-1] in _BYPASSED
        linear = isinstance(part, nn.Linear | Conv1D) and ".lora_" not in name
        if linear and not bypassed and part is not head:
            yield name


def plain_layers(module: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    """Yield (name, layer) of those :func:`linear_layers` that are plain ``nn.Linear``, without
    their adapters."""
    for name in linear_layers(module):
        part: Any = module.get_submodule(name)
        part = getattr(part, "base_layer", part)
        if type(part) is nn.Linear:
            yield name, part


def _with_fused(linear: set[str], wanted: tuple[str, ...]) -> tuple[list[str], set[str]]:
    """The names of ``wanted`` layers, with fused layers for their parts; and the missing names."""
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


def add_adapter(
    module: Any, name: str, spec: LoraSpec, seed: int, revision: str | None = None
) -> Any:
    """Add an adapter to ``module`` (arXiv:2106.09685); return the peft model.

    Args:
        module: a transformers model, which is wrapped, or a peft model.
        name: name of the adapter, unique on the model.
        spec: rank and layers of a new adapter, or the folder of an adapter to load.
        seed: seed of A in a new adapter; B is 0, so the adapter is the identity.
        revision: the base's commit, which is stored with the adapter.

    Raises:
        UserError: the model does not support the adapter, or the loaded adapter does not fit.
    """
    from peft import PeftModel, get_peft_model

    base: Any = module.get_base_model() if isinstance(module, PeftModel) else module
    config = _new_config(base, spec) if spec.adapter is None else _stored_config(spec.adapter)
    if base.name_or_path:
        # peft sets this for the first adapter of a base only.
        config.base_model_name_or_path = base.name_or_path
    config.revision = revision or config.revision
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


def _new_config(base: Any, spec: LoraSpec) -> Any:
    """The ``LoraConfig`` of a new adapter."""
    from peft import LoraConfig

    return LoraConfig(
        task_type="CAUSAL_LM",
        r=spec.rank,
        lora_alpha=spec.alpha,  # type: ignore[arg-type]
        lora_dropout=0.0,
        target_modules=resolve_targets(base, spec.targets),
        fan_in_fan_out=any(isinstance(part, Conv1D) for part in base.modules()),
    )


def _stored_config(adapter: str) -> Any:
    """The ``LoraConfig`` of an adapter in a folder, which may learn."""
    from peft import LoraConfig

    with in_one_sentence(f"{adapter}/adapter_config.json cannot be used"):
        config = LoraConfig.from_pretrained(adapter)
    if not isinstance(config, LoraConfig):
        raise UserError(
            f"{adapter} is an adapter of type {config.peft_type}; name a LoRA adapter, or a whole "
            "model"
        )
    if config.modules_to_save or config.trainable_token_indices or config.bias != "none":
        # They would be those of all roles on the base, and nothing would train them.
        raise UserError(
            f"{adapter} has biases or whole modules of the model beside its own matrices: merge it "
            "with its model first (peft's merge_and_unload)"
        )
    start = str(config.init_lora_weights).lower()
    if config.layer_replication or start.startswith(CHANGE_BASE):
        # peft changes the weights of the base, which other roles and an engine have as they were.
        changed = "layer_replication" if config.layer_replication else start
        raise UserError(
            f"{adapter} belongs to changed weights of its model ({changed}): merge it with them "
            "first (peft's merge_and_unload)"
        )
    if config.alora_invocation_tokens:
        # Computed without a whole prompt, it has no effect and no gradient.
        raise UserError(
            f"{adapter} acts only behind its invocation tokens (aLoRA); name an adapter that acts "
            "on all tokens, or a whole model"
        )
    config.inference_mode = False
    config.lora_dropout = 0.0
    return config


def compute_in_one_format(module: nn.Module) -> None:
    """Make plain adapted layers of ``module`` compute in the format of their input, with few memory
    passes.

    With 16-bit input, peft casts it to the adapter's float32, multiplies, and scales, adds and
    casts full-width results: six memory passes for a product of rank 16. Here the adapter is
    rounded to the input's format, as in automatic mixed precision, and added within a matrix
    product. Adapter weights and their gradients stay in float32. With float32 input only layers in
    8 bits compute in this way; for all others peft's passes cost little beside the product.
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
        slow = x.dtype == torch.float32 and not isinstance(layer.base_layer, Int8Linear)
        if special or slow or not _is_plain(layer, active[0]):
            return plain(x, *args, **kwargs)
        down_RI, up_OR = (part[active[0]].weight for part in (layer.lora_A, layer.lora_B))
        y = layer.base_layer(x)
        inner = x.flatten(0, -2) @ down_RI.to(x.dtype).t()
        scaled_OR = (up_OR * layer.scaling[active[0]]).to(x.dtype)
        return torch.addmm(y.flatten(0, -2), inner, scaled_OR.t()).view(y.shape)

    return forward


def merges(module: Any, adapter: str | None) -> bool:
    """Whether copies of the weights of the blocks can hold the adapter: all that it does is to add
    B A to matrices of linear layers. DoRA scales their rows, and others adapt the head, the
    embedding or biases.

    Args:
        module: the transformers model that the adapter is on.
        adapter: its name; None: there is none.
    """
    if adapter is None:
        return True
    from peft.tuners.lora.layer import Linear, LoraLayer

    head = module.get_output_embeddings()
    return all(
        isinstance(layer, Linear) and layer is not head and _is_plain(layer, adapter)
        for layer in module.modules()
        if isinstance(layer, LoraLayer) and adapter in layer.r
    )


def _is_plain(layer: Any, adapter: str) -> bool:
    """Whether the adapter only adds B A x to the layer's output."""
    return (
        adapter in layer.lora_A
        and adapter not in layer.lora_variant
        and not layer.lora_bias.get(adapter)
        and isinstance(layer.lora_dropout[adapter], nn.Identity)
    )
