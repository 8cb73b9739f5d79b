"""Putting adapters on a model: which layers, and several adapters on one base."""

from typing import Any

import torch
from torch import nn

from coterie.datatypes import UserError, user_path
from coterie.models.damage import check_sums, in_one_sentence
from coterie.models.handle import load_adapter
from coterie.models.spec import LoraSpec

# Layers that hold several projections in one matrix, and what they hold.
_FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}


def resolve_targets(module: nn.Module, targets: tuple[str, ...]) -> list[str]:
    """The names that ``module`` gives to the wanted linear layers.

    Raises :class:`UserError` for a name that it lacks, and for half of a fused layer.
    """
    # A layer that already bears adapters keeps its own matrix in `base_layer`.
    names = [
        name.removesuffix(".base_layer")
        for name, part in module.named_modules()
        if isinstance(part, nn.Linear) and ".lora_" not in name
    ]
    linear = {name.rsplit(".", 1)[-1] for name in names}
    found = [t for t in targets if t in linear]
    missing = set(targets) - set(found)
    for fused, parts in _FUSED.items():
        wanted = missing & set(parts)
        if fused not in linear or not wanted:
            continue
        if wanted != set(parts):
            raise UserError(
                f"LoRA targets name {', '.join(sorted(wanted))}, but this model fuses "
                f"{', '.join(parts)} into {fused}: name all of them, or {fused}"
            )
        found.append(fused)
        missing -= wanted
    if missing:
        raise UserError(
            f"LoRA targets {', '.join(sorted(missing))} are no linear layers of this model; "
            f"it has {', '.join(sorted(linear))}"
        )
    return found


def add_adapter(module: Any, name: str, spec: LoraSpec, seed: int) -> Any:
    """``module`` with a new adapter: the identity (B = 0, A random by ``seed``), or the one in
    ``spec.adapter``. A plain model is wrapped; a peft model gets one more adapter."""
    from peft import LoraConfig, PeftModel, get_peft_model

    base = module.get_base_model() if isinstance(module, PeftModel) else module
    if spec.adapter is None:
        config = LoraConfig(
            task_type="CAUSAL_LM",
            r=spec.rank,
            lora_alpha=spec.alpha,  # type: ignore[arg-type]
            lora_dropout=0.0,
            target_modules=resolve_targets(base, spec.targets),
        )
    else:
        with in_one_sentence(f"{spec.adapter}/adapter_config.json cannot be used"):
            config = LoraConfig.from_pretrained(spec.adapter)
        if not isinstance(config, LoraConfig):
            raise UserError(f"{spec.adapter} is no LoRA adapter but of type {config.peft_type}")
        config.inference_mode = False
        config.lora_dropout = 0.0
    what = f"{spec.adapter or 'LoRA'} cannot be put on this model"
    with torch.random.fork_rng(devices=[]), in_one_sentence(what):
        torch.manual_seed(seed)
        if isinstance(module, PeftModel):
            module.add_adapter(name, config)
        else:
            module = get_peft_model(module, config, adapter_name=name)
    if spec.adapter is not None:
        check_sums(user_path(spec.adapter))
        load_adapter(module, user_path(spec.adapter), name)
    return module.eval()
