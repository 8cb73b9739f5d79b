"""Loads models by their specs; roles on the same model share a base, unless they learn full
weights."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import torch

from coterie.agents.models import int8, nf4
from coterie.agents.models.blocks import Recomputation, compute_in
from coterie.agents.models.codec import HFCodec
from coterie.agents.models.context import longest_context
from coterie.agents.models.damage import check_complete, check_finite, check_sums, in_one_sentence
from coterie.agents.models.family import cap_scores, pin_rope
from coterie.agents.models.gguf import is_quantized
from coterie.agents.models.handle import ModelHandle, Switch
from coterie.agents.models.instructions import fit_instructions
from coterie.agents.models.load_tokenizer import load_tokenizer, source_of
from coterie.agents.models.locate import check_model, local_folder
from coterie.agents.models.lora import add_adapter, plain_layers
from coterie.agents.models.number_format import number_format_of
from coterie.agents.models.process import quietly, replaced
from coterie.agents.models.shards import Ranks, joined
from coterie.agents.models.spec import TINY_BYTES, ModelSpec
from coterie.agents.models.system_message import check_system
from coterie.agents.models.threads import ProcessorLoad, use_free_threads
from coterie.cli.progress import LOADED
from coterie.datatypes import UserError, derive_seed

_SAME_DIRECTION = 0.99
"""Smallest cosine of two states that differ only by 16-bit rounding."""


@dataclass(frozen=True)
class LoadedRole:
    """A role's model, codec and tokenizer."""

    handle: ModelHandle
    codec: HFCodec
    tokenizer: Any
    cut: bool = False
    """Whether the model is the text decoder of a vision-language checkpoint."""


def load_team(
    specs: Mapping[str, ModelSpec], trained: Set[str], *, seed: int = 0
) -> dict[str, LoadedRole]:
    """Load every role's model, after a check of all specs.

    Roles with LoRA on the same model share one base in memory, and so do frozen roles without an
    adapter. A role that learns full weights has its own copy. A process that is one of several
    ranks keeps a shard of everything.

    Args:
        specs: role -> its model.
        trained: roles that learn; the others require no gradient.
        seed: determines the random initialization of new adapters.

    Raises:
        UserError: a model cannot be loaded.
    """
    unknown = set(trained) - set(specs)
    if unknown:
        raise UserError(f"no model is given for trained roles {', '.join(sorted(unknown))}")
    for role, spec in specs.items():
        check_model(spec, role=role, trained=role in trained)
        check_system(spec, role)
    full = {role for role, spec in specs.items() if spec.lora is None and role in trained}
    fit_instructions(specs.values())
    for role, spec in specs.items():
        _check_kernel(spec, trained=role in trained)
    load = ProcessorLoad.now()
    bases: dict[tuple[Any, ...], _Base] = {}
    base_of: dict[str, _Base] = {}
    for role, spec in specs.items():
        key = (role,) if role in full else (spec.lora is None, *base_key(spec))
        if key not in bases:
            bases[key] = _load_base(spec, learns=role in full)
        base = base_of[role] = bases[key]
        if spec.lora is not None:
            own_seed = derive_seed(seed, "lora", role)
            base.module = add_adapter(
                base.module, _adapter_name(role), spec.lora, own_seed, spec.revision
            )
        LOADED.add(1)
    loaded = {role: _role(role, base_of[role], specs[role], role in trained) for role in specs}
    if joined():
        for base in bases.values():
            mine = [role for role in specs if base_of[role] is base]
            _shard(base, specs[mine[0]], [loaded[role].handle for role in mine])
    handles = [role.handle for role in loaded.values()]
    if any(handle.device.type == "cpu" and handle.weight_bytes > TINY_BYTES for handle in handles):
        use_free_threads(load)
    return loaded


@dataclass
class _Base:
    module: Any
    tokenizer: Any
    switch: Switch
    eos_ids: tuple[int, ...]
    dtype: torch.dtype
    recomputation: Recomputation
    cut: bool


def _role(role: str, base: _Base, spec: ModelSpec, trained: bool) -> LoadedRole:
    adapter = None if spec.lora is None else _adapter_name(role)
    handle = ModelHandle(
        base.module,
        tokenizer=base.tokenizer,
        trained=trained,
        context=longest_context(base.module.config, spec),
        adapter=adapter,
        given=spec.lora is not None and spec.lora.adapter is not None,
        switch=base.switch,
        dtype=base.dtype,
        recomputation=base.recomputation,
        recompute=spec.recompute,
    )
    if adapter is None:
        base.module.requires_grad_(trained)
    _check_head(handle)
    with in_one_sentence(f"the tokenizer of {spec.model!r} cannot be used"):
        codec = HFCodec(
            base.tokenizer,
            chat=spec.chat,
            system=spec.system,
            vocab_size=handle.vocab_size,
            eos_ids=base.eos_ids,
            context=handle.context,
        )
    return LoadedRole(handle, codec, base.tokenizer, base.cut)


def _adapter_name(role: str) -> str:
    # Module names cannot contain dots, and peft confuses names that are part of "lora_" with its
    # prefix.
    return "role-" + role.replace(".", "-")


def base_key(spec: ModelSpec) -> tuple[Any, ...]:
    """Return a key that is equal for specs of one base: the same weights, read in the same way."""
    folder, chosen = local_folder(spec), number_format_of(spec)
    name = spec.model if folder is None else str(folder.resolve())
    return (
        name,
        spec.revision,
        chosen.name,
        chosen.codes,
        _device(spec),
        spec.trust_remote_code,
        spec.context,
    )


def _check_kernel(spec: ModelSpec, *, trained: bool) -> None:
    chosen = number_format_of(spec, trained=trained)
    if chosen.codes == "nf4":
        nf4.check_kernel(_device(spec), chosen.dtype)
    elif chosen.codes == "int8":
        int8.check_kernel(_device(spec))


def _load_base(spec: ModelSpec, *, learns: bool = False) -> _Base:
    """``learns``: whether its full weights are trained."""
    from transformers import AutoConfig

    chosen, folder = number_format_of(spec, trained=learns), local_folder(spec)
    if joined() and spec.dtype == "auto":
        chosen = replace(chosen, codes=None)  # there are no shards of codes
    dtype = chosen.dtype
    held_dtype = torch.float32 if learns else dtype
    name, common = source_of(spec, folder)
    if folder is not None:
        check_sums(folder)
    with quietly(bars=folder is None):
        with in_one_sentence(f"the config.json of {spec.model!r} cannot be used"):
            config: Any = AutoConfig.from_pretrained(name, **common)
        context = longest_context(config, spec)
        tokenizer = load_tokenizer(spec)
        with in_one_sentence(f"the model {spec.model!r} cannot be loaded"):
            if chosen.codes == "int8" and is_quantized(spec.model):
                module, info, cut = _read_as_stored(name, config, common)
            else:
                module, info, cut = _read(name, config, common, held_dtype)
    check_complete(info, spec.model, folder)
    check_finite(dict(module.named_parameters()), spec.model, folder)
    if chosen.codes == "nf4":
        nf4.quantize(module, plain_layers(module), _device(spec))
    elif chosen.codes == "int8":
        int8.quantize(module, plain_layers(module))
        module.float()
    if not joined():  # with several ranks, each block moves separately, in shards
        module = module.to(_device(spec))  # type: ignore[arg-type]
    module.eval()
    cap_scores(module)
    pin_rope(module, context)
    if held_dtype != dtype and not joined():
        compute_in(module, dtype)
    eos_ids = _eos_ids(module, tokenizer)
    return _Base(module, tokenizer, Switch(), eos_ids, dtype, Recomputation(module), cut)


def _read_as_stored(name: str, config: Any, common: Mapping[str, Any]) -> tuple[Any, Any, bool]:
    """Read a converted file of rounded weights as it is stored: matrices in bfloat16, all else in
    float32. So no copy of the matrices is made before they are quantized."""
    from transformers import PreTrainedModel

    with replaced(PreTrainedModel, "_keep_in_fp32_modules_strict", {"norm", "bias"}):
        module, info, cut = _read(name, config, common, torch.bfloat16)
    if any(p.dim() == 1 and p.dtype != torch.float32 for p in module.parameters()):
        return _read(name, config, common, torch.float32)  # some are called otherwise
    module.config.dtype = torch.float32
    return module, info, cut


def _shard(base: _Base, spec: ModelSpec, handles: Sequence[ModelHandle]) -> None:
    """Keep only this rank's shard of a base and of all adapters on it."""
    held_dtype = next(base.module.parameters()).dtype
    full = spec.lora is None
    ranks = Ranks(
        base.module, _device(spec), base.dtype if full and held_dtype != base.dtype else None
    )
    for handle in handles:
        handle.ranks = ranks
        # It reads weights outside of the blocks' forward passes, which gather them.
        handle.tree_forward = None
        _check_packing(handle)


def _check_packing(handle: ModelHandle) -> None:
    if handle.device.type == "cuda":
        handle.packs = handle.packs and handle.ranks.forward(lambda: packing_agrees(handle))


def _read(
    name: str, config: Any, common: Mapping[str, Any], dtype: torch.dtype
) -> tuple[Any, Any, bool]:
    """Return a causal language model, transformers' ``output_loading_info``, and whether the model
    is only the text decoder of a vision-language checkpoint."""
    from transformers import (
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
    )

    sees = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    cut = sees and type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING
    auto: Any = AutoModelForImageTextToText if cut else AutoModelForCausalLM
    whole, info = auto.from_pretrained(
        name,
        dtype=dtype,
        use_safetensors=True,
        output_loading_info=True,
        # check_complete reports them.
        ignore_mismatched_sizes=True,
        **common,
    )
    if not cut:
        return whole, info, False
    text = config.get_text_config()
    text.dtype, text.name_or_path = dtype, name
    text.tie_word_embeddings = whole.lm_head.weight is whole.get_input_embeddings().weight
    with torch.device("meta"):
        module: Any = AutoModelForCausalLM.from_config(text)
    setattr(module, module.base_model_prefix, whole.model.language_model)
    module.set_output_embeddings(whole.lm_head)
    module.generation_config = whole.generation_config
    return module, info, True


def _check_head(handle: ModelHandle) -> None:
    """Refuse a model whose logits are not :meth:`ModelHandle.head` of its last hidden states."""
    ids = torch.arange(4, device=handle.device)[None] % handle.vocab_size
    kind, dtype = handle.causal_lm.config.model_type, str(handle.dtype).rpartition(".")[2]
    wrong = f"models of type {kind!r} do not compute in {dtype}; try another --agents.ROLE.dtype"
    with torch.no_grad(), handle.active(), in_one_sentence(wrong):
        ours = handle.head(handle.backbone(ids))
        theirs = handle.causal_lm(input_ids=ids, use_cache=False).logits
    if not torch.allclose(ours.float(), theirs.float(), rtol=1e-3, atol=1e-3):
        raise UserError(
            f"models of type {kind!r} have an unsupported logit computation; take a model of "
            "another type (docs/models.md#architectures)"
        )
    _check_packing(handle)


@torch.no_grad()
def packing_agrees(handle: ModelHandle) -> bool:
    """Whether packed rows have the states of padded rows on the model's device.

    Changes ``handle.packs``, so the caller must set it.
    """
    ids_BT = torch.arange(2, 26, device=handle.device).repeat(2, 1) % handle.vocab_size
    ids_BT[1, 18:] //= 2
    mask_BT = torch.arange(23, device=handle.device).expand(2, -1) >= 17
    try:
        with handle.active():
            handle.packs = True
            packed = handle.scored_states(ids_BT, mask_BT).float()
            handle.packs = False
            padded = handle.scored_states(ids_BT, mask_BT).float()
    except (RuntimeError, ImportError, TypeError):  # the kernel is missing or of another version
        return False
    return bool(torch.cosine_similarity(packed, padded, dim=-1).min() > _SAME_DIRECTION)


def _eos_ids(module: Any, tokenizer: Any) -> tuple[int, ...]:
    """All ids that end a text; the generation settings can list several."""
    generation = module.generation_config
    of_model = None if generation is None else generation.eos_token_id
    ids: set[int] = set()
    for stated in (of_model, tokenizer.eos_token_id):
        if isinstance(stated, list | tuple):
            ids.update(stated)
        elif stated is not None:
            ids.add(stated)
    return tuple(sorted(ids))


def _device(spec: ModelSpec) -> torch.device:
    if spec.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(spec.device)
