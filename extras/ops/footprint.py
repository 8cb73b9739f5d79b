"""Bytes that one model takes, from its ``config.json`` alone.

The model is built on torch's ``meta`` device, where tensors have shapes and no numbers. The
learner's own code runs a micro-batch forward and backward there, and the bytes that live at once
are added up. So no architecture needs a formula, and a change of that code changes the plan.
"""

import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from coterie.agents.models import int8, nf4
from coterie.agents.models.blocks import compute_in
from coterie.agents.models.damage import in_one_sentence
from coterie.agents.models.family import (
    activation_bytes,
    cache_width,
    cap_scores,
    is_llama_like,
    pin_rope,
)
from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.lora import add_adapter, plain_layers
from coterie.agents.models.number_format import number_format_of
from coterie.agents.models.process import quietly, replaced
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.sampling.weights import packs
from coterie.algorithms.logprobs import positions_at_once, score

_SHALLOW, _DEEPER = 2, 3
"""Layers of the models that are measured; their difference is what each further layer adds."""
_CHUNKS = 3
"""Chunks of logits that are measured; all others are like them."""


@dataclass(frozen=True)
class Load:
    """The largest micro-batch: as many of the longest rows as fit."""

    tokens: int
    """The learner's ``micro_batch_tokens``."""
    longest: int
    """Tokens of a row."""
    answer: int
    """Tokens of a row that are scored."""
    entropy: bool = False
    """Whether the loss has an entropy term."""
    most: int = 1 << 20
    """Rows of an update."""
    prompt: int = 0
    """Tokens at the start of a row that other rows may share."""
    starts: float = 1.0
    """Different starts per row: 1/8 where eight rows share each."""

    @property
    def rows(self) -> int:
        row_tokens = self.longest - self.prompt + self.starts * self.prompt
        fit = int(self.tokens // row_tokens)
        while self._of(fit) > self.tokens:
            fit -= 1  # fewer rows may share the last start
        return max(1, min(fit, self.most))

    @property
    def computed(self) -> int:
        """Tokens of these rows; shared ones count once."""
        return self._of(self.rows)

    def _of(self, rows: int) -> int:
        return rows * (self.longest - self.prompt) + ceil(rows * self.starts) * self.prompt


@dataclass(frozen=True)
class Footprint:
    """Sizes of one model, in bytes unless noted."""

    parameters: int
    """Number of weights of the base model."""
    weights: int
    """The base model's weights as they are stored."""
    layers: int
    """The part of them in decoder blocks, before they are quantized."""
    copied: int
    """Decoder blocks as the sampler copies them, in the format of the computation or in codes of 8
    bits."""
    head: int
    """The head as the sampler copies it where matrices are packed, once for all adapters."""
    trained: int
    """The weights that learn: all of them, or an adapter; 0 for a frozen role. Their gradients take
    as much again."""
    activations: int
    """Peak of a micro-batch beside weights and gradients: activations and logits."""
    recomputes: bool
    """Whether activations are computed twice."""
    cache_per_token: int
    """Keys and values of one token, in this process's sampler or in an engine."""
    fused: bool
    """Whether this process samples from a fused copy of the weights."""
    int8: bool = False
    """Whether matrices are multiplied in 8 bits."""

    @property
    def learning(self) -> int:
        """Peak of an update beside the weights: gradients, activations and logits."""
        return self.trained + self.activations


_MEASURED: dict[tuple[str, ModelSpec, Load | None, torch.dtype], Footprint] = {}
"""A plan is made again for each flag that might make the run fit."""


def footprint(config: Any, spec: ModelSpec, load: Load | None, dtype: torch.dtype) -> Footprint:
    """Measure a model with this configuration.

    Args:
        config: configuration of transformers.
        spec: how the model is loaded.
        load: what it learns from; None for a frozen role.
        dtype: the format of its computations.

    Raises:
        UserError: transformers cannot build the model.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        # A model that also sees has its decoder's configuration inside.
        config = config.get_text_config()
    key = json.dumps(config.to_dict(), sort_keys=True, default=str), spec, load, dtype
    if key not in _MEASURED:
        _MEASURED[key] = _measured(config, spec, load, dtype)
    return _MEASURED[key]


def _measured(config: Any, spec: ModelSpec, load: Load | None, dtype: torch.dtype) -> Footprint:
    text = config.get_text_config()
    handle = _handle(config, spec, load is not None, dtype)
    base = {name: p for name, p in handle.module.named_parameters() if ".lora_" not in name}
    parameters = list(handle.module.named_parameters())
    activations, recomputes = 0, False
    if load is not None:
        if not handle.packs:
            load = replace(load, starts=1.0)  # padded rows share nothing
        recomputes = handle.recomputes(load.computed)
        fixed = replace(spec, recompute="always" if recomputes else "never")
        try:
            activations = _all_layers(config, fixed, load, dtype)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            # The model's code reads numbers, which the meta device does not have.
            activations = _by_formula(text, load, recomputes=recomputes, itemsize=dtype.itemsize)
    weights = sum(p.nbytes for p in base.values())
    layers = sum(p.nbytes for name, p in parameters if ".layers." in name)
    numbers = sum(p.numel() for p in base.values())
    copied = layers * (numbers * dtype.itemsize) // weights
    lm, codes = handle.causal_lm, number_format_of(spec, trained=load is not None).codes
    head = lm.get_output_embeddings().weight
    packed = spec.device == "cpu" and codes != "int8" and packs(head.to(dtype))
    if codes == "nf4":
        matrices = [layer.weight for _, layer in nf4.quantizable(plain_layers(lm))]
        weights += sum(nf4.stored_bytes(matrix.numel()) - matrix.nbytes for matrix in matrices)
        # One matrix at a time is restored.
        activations += max((matrix.nbytes for matrix in matrices), default=0)
    elif codes == "int8":
        matrices = [layer.weight for _, layer in plain_layers(lm)]
        copied = sum(map(int8.stored_bytes, matrices))
        table = lm.get_input_embeddings().weight
        weights += copied - sum(matrix.nbytes for matrix in matrices)
        weights += int8.stored_bytes(head) - (0 if head is table else head.nbytes)
    return Footprint(
        parameters=numbers,
        weights=weights,
        layers=layers,
        copied=copied,
        head=head.numel() * dtype.itemsize * packed,
        trained=sum(p.nbytes for p in handle.parameters().values()),
        activations=activations,
        recomputes=recomputes,
        cache_per_token=text.num_hidden_layers * cache_width(text) * dtype.itemsize,
        fused=is_llama_like(handle.causal_lm),
        int8=codes == "int8",
    )


def _all_layers(config: Any, spec: ModelSpec, load: Load, dtype: torch.dtype) -> int:
    """The peak of the whole model, from two that have few of its layers."""
    depth = config.get_text_config().num_hidden_layers
    shallow, deeper = min(_SHALLOW, depth), min(_DEEPER, depth)
    peak = measure(with_layers(config, shallow), spec, load, dtype)
    if deeper > shallow:
        layer = measure(with_layers(config, deeper), spec, load, dtype) - peak
        peak += layer * (depth - shallow)
    return peak


def _by_formula(text: Any, load: Load, *, recomputes: bool, itemsize: int) -> int:
    """A peak for any decoder."""
    tokens, depth = load.computed, text.num_hidden_layers
    peak = activation_bytes(text, tokens, itemsize)
    if recomputes:
        # One block at a time, and the input of each.
        peak = peak // depth + tokens * depth * text.hidden_size * itemsize
    positions = min(positions_at_once(text.vocab_size, on_cpu=False), load.longest)
    return peak + 16 * positions * text.vocab_size


def _handle(config: Any, spec: ModelSpec, learns: bool, dtype: torch.dtype) -> ModelHandle:
    """A model without numbers, as :func:`coterie.agents.models.loading.load_team` loads it."""
    from transformers import AutoModelForCausalLM

    adapter = "role-planned" if spec.lora is not None else None
    stored_as = torch.float32 if learns and adapter is None else dtype
    context = getattr(config.get_text_config(), "max_position_embeddings", None) or 1 << 20
    with quietly(), torch.device("meta"), in_one_sentence(f"{spec.model!r} cannot be planned"):
        module: Any = AutoModelForCausalLM.from_config(
            config, dtype=stored_as, trust_remote_code=spec.trust_remote_code
        )
        cap_scores(module)
        pin_rope(module, spec.context or context)
        if adapter is not None:
            module = add_adapter(module, adapter, _without_weights(spec.lora), 0)
        else:
            module.requires_grad_(learns)
    if stored_as != dtype:
        compute_in(module, dtype)
    return ModelHandle(
        module.eval(),
        tokenizer=None,
        trained=learns,
        context=context,
        adapter=adapter,
        dtype=dtype,
        recompute=spec.recompute,
    )


def _without_weights(lora: LoraSpec | None) -> Any:
    """A new adapter of the size of a stored one."""
    if lora is None or lora.adapter is None:
        return lora
    from peft import LoraConfig

    config: Any = LoraConfig.from_pretrained(lora.adapter)
    return LoraSpec(config.r, config.lora_alpha)


def with_layers(config: Any, count: int) -> Any:
    """``config`` with ``count`` decoder blocks."""
    less = type(config).from_dict(config.to_dict())
    text = less.get_text_config()
    if isinstance(kinds := getattr(text, "layer_types", None), list):
        text.layer_types = kinds[:count]
    text.num_hidden_layers = count
    return less


def measure(config: Any, spec: ModelSpec, load: Load, dtype: torch.dtype) -> int:
    """Peak bytes of one micro-batch beside weights, gradients and moments."""
    handle = _handle(config, spec, True, dtype)
    own = list(handle.parameters().values())
    several = load.most > load.rows
    for parameter in own if several else ():
        # The micro-batch before left gradients. A first one makes them, which is subtracted below.
        parameter.grad = torch.zeros_like(parameter)
    ids_BT, mask_BT = _rows(handle, load)
    living = _Living([*handle.module.parameters(), *handle.module.buffers()])
    living.ignore(p.grad for p in own if p.grad is not None)
    # On the meta device torch would choose the kernel of attention that keeps every score.
    # Recomputation in a backward pass would leave a mode of torch.
    attention = replaced(torch.nn.functional, "scaled_dot_product_attention", _attend)
    with attention, handle.active(), living:
        if handle.packs or handle.takes_tree(ids_BT):
            hidden_NH = handle.scored_states(ids_BT, mask_BT)
        else:
            hidden_NH = _padded_states(handle, ids_BT, mask_BT)
        few = min(len(hidden_NH), _CHUNKS * positions_at_once(handle.vocab_size, on_cpu=False))
        target_N = torch.zeros(few, dtype=torch.long, device="meta")
        scored = score(
            *(hidden_NH[:few], target_N, handle.head),
            temperature=1.0,
            entropy_gradient=load.entropy,
            head_learns=handle.head_learns,
        )
        (scored.logp_N.sum() + scored.entropy_N.sum()).backward()
    # Chunks that were left out have gradients too, until all are concatenated.
    most = living.most + (len(hidden_NH) - few) * hidden_NH[:1].nbytes
    return most if several else max(0, most - sum(p.nbytes for p in own))


def _rows(handle: ModelHandle, load: Load) -> tuple[Tensor, Tensor]:
    """Random rows with the prompts of a micro-batch, (B, T), and their mask, (B, T - 1)."""
    random = np.random.default_rng(0)
    ids_BT = torch.from_numpy(random.integers(0, handle.vocab_size, (load.rows, load.longest)))
    starts = [int(row * load.starts) for row in range(load.rows)]
    ids_BT[:, : load.prompt] = ids_BT[[starts.index(start) for start in starts], : load.prompt]
    answer = min(load.answer, load.longest - 1)
    if handle.packs and not handle.takes_tree(ids_BT):
        # Packed rows take what two long ones take, which are faster to measure.
        several_rows = 2 if load.rows % 2 == 0 else 1
        ids_BT = torch.from_numpy(
            random.integers(0, handle.vocab_size, (several_rows, load.computed // several_rows))
        )
        answer = answer * load.rows // several_rows
    mask_BT = torch.zeros(len(ids_BT), ids_BT.shape[1] - 1, dtype=torch.bool)
    mask_BT[:, -answer:] = True
    return ids_BT, mask_BT


def _padded_states(handle: ModelHandle, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """:meth:`ModelHandle.scored_states` for a model whose rows are not packed."""
    ids = ids_BT.to("meta")
    # Real numbers, not meta: transformers builds masks from them.
    position_BT = torch.arange(ids.shape[1]).expand(ids.shape)
    with handle.backward_pass(ids.numel()):
        states = handle.backbone(ids, position_BT)[:, :-1]
    place_N = mask_BT.reshape(-1).nonzero()[:, 0].to("meta")
    return states.reshape(-1, states.shape[-1]).index_select(0, place_N)


class _Living(TorchDispatchMode):
    """Counts the bytes of the tensors that operations make, while they live. Tensors that meet one
    of the ``meta`` device are moved there."""

    def __init__(self, known: list[Tensor]) -> None:
        super().__init__()
        self.most = 0
        self._now = 0
        self._seen: set[int] = set()
        self.ignore(known)

    def ignore(self, known: Iterator[Tensor] | list[Tensor]) -> None:
        """Do not count these."""
        self._seen.update(tensor.untyped_storage()._cdata for tensor in known)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = args, kwargs or {}
        if any(isinstance(leaf, Tensor) and leaf.is_meta for leaf in tree_leaves(given)):
            given = tree_map_only(Tensor, _on_meta, given)
        out = func(*given[0], **given[1])
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor):
                self._add(leaf.untyped_storage())
        return out

    def _add(self, storage: Any) -> None:
        place, size = storage._cdata, storage.nbytes()
        if place in self._seen:
            return
        self._seen.add(place)
        self._now += size
        self.most = max(self.most, self._now)
        weakref.finalize(storage, self._drop, place, size)

    def _drop(self, place: int, size: int) -> None:
        self._seen.discard(place)
        self._now -= size


def _on_meta(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_meta else torch.empty_like(tensor, device="meta")


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Stands in for ``scaled_dot_product_attention``, with its arguments, and keeps for the
    backward pass what fused kernels keep."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (k, v))
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return kernel(q, k, v, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]
