"""How many bytes one model takes, by its ``config.json`` alone.

It is put together on torch's ``meta`` device, where tensors have shapes and formats and no numbers,
and a micro-batch goes forward and backward there by the learner's own code; what lives at once is
added up. So no architecture needs a formula, and a change of that code changes the plan.
"""

import json
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

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
from coterie.agents.models.lora import add_adapter
from coterie.agents.models.process import quietly, replaced
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.algorithms.logprobs import positions_at_once, score

_SHALLOW, _DEEPER = 2, 3
"""Layers that are measured; what one more of them adds, all others add."""
_CHUNKS = 3
"""Chunks of logits that are measured; all others are like them."""


@dataclass(frozen=True)
class Load:
    """The micro-batch that takes most: rows of the longest kind, side by side."""

    tokens: int
    """The learner's ``micro_batch_tokens``."""
    longest: int
    """Tokens of a row."""
    answer: int
    """Tokens of a row that are scored."""
    entropy: bool = False
    """Whether the loss has an entropy term."""
    most: int = 1 << 20
    """Rows that an update has."""
    prompt: int = 0
    """Tokens at the start of a row that others may share."""
    starts: float = 1.0
    """Different starts a row: 1/8 where each is that of eight rows."""

    @property
    def rows(self) -> int:
        row_tokens = self.longest - self.prompt + self.starts * self.prompt
        fit = int(self.tokens // row_tokens)
        while self._of(fit) > self.tokens:
            fit -= 1  # the last start is that of fewer rows
        return max(1, min(fit, self.most))

    @property
    def computed(self) -> int:
        """Tokens of these rows; what they share counts once."""
        return self._of(self.rows)

    def _of(self, rows: int) -> int:
        return rows * (self.longest - self.prompt) + ceil(rows * self.starts) * self.prompt


@dataclass(frozen=True)
class Footprint:
    """Bytes, by what for."""

    parameters: int
    """Numbers, not bytes; of the base alone."""
    weights: int
    """Bytes of the base model's weights as they are stored."""
    trained: int
    """Bytes of the weights that learn: all of them, or an adapter; 0 for a frozen role."""
    moments: int
    gradients: int
    update: int
    """Most that a micro-batch takes besides, forward or backward."""
    recomputes: bool
    """Whether that is with activations computed twice."""
    cache_per_token: int
    """Keys and values of one token in this process's sampler, or in an engine."""
    layers: int
    """Bytes of the decoder blocks' weights."""
    fused: bool
    """Whether this process samples from a fused copy of them."""


def footprint(config: Any, spec: ModelSpec, load: Load | None, dtype: torch.dtype) -> Footprint:
    """What a model with this configuration takes.

    Args:
        config: of transformers.
        spec: how it is held.
        load: what it learns from; None for a frozen role.
        dtype: what it computes in.

    Raises:
        UserError: transformers cannot build it.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        # Of a model that also sees, the decoder of text.
        config = config.get_text_config()
    plain = json.dumps(config.to_dict(), sort_keys=True, default=str)
    return _footprint(plain, _Key(config), spec, load, dtype)


class _Key:
    """A configuration that is told apart by its JSON beside it."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=256)
def _footprint(
    _: str, key: _Key, spec: ModelSpec, load: Load | None, dtype: torch.dtype
) -> Footprint:
    text = key.config.get_text_config()
    handle = _handle(key.config, spec, load is not None, dtype)
    base = [p for name, p in handle.module.named_parameters() if ".lora_" not in name]
    own = list(handle.parameters().values())
    learned = sum(p.nbytes for p in own)
    update, recomputes = 0, False
    if load is not None:
        if not handle.packs:
            load = replace(load, starts=1.0)  # padded rows share nothing
        recomputes = handle.recomputes(load.computed)
        fixed = replace(spec, recompute="always" if recomputes else "never")
        depth = text.num_hidden_layers
        shallow, deeper = min(_SHALLOW, depth), min(_DEEPER, depth)
        try:
            update = measure(with_layers(key.config, shallow), fixed, load, dtype)
            if deeper > shallow:
                more = measure(with_layers(key.config, deeper), fixed, load, dtype) - update
                update += more * (depth - shallow)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            # Code that looks at numbers, which are not there: a formula for any decoder.
            tokens = load.computed
            update = activation_bytes(text, tokens, dtype.itemsize)
            if recomputes:
                update = update // depth + tokens * depth * text.hidden_size * dtype.itemsize
            positions = min(positions_at_once(text.vocab_size, on_cpu=False), load.longest)
            update += 16 * positions * text.vocab_size
    blocks = sum(p.nbytes for name, p in handle.module.named_parameters() if ".layers." in name)
    return Footprint(
        parameters=sum(p.numel() for p in base),
        weights=sum(p.nbytes for p in base),
        trained=learned,
        moments=2 * learned,
        gradients=learned,
        update=update,
        recomputes=recomputes,
        cache_per_token=text.num_hidden_layers * cache_width(text) * dtype.itemsize,
        layers=blocks,
        fused=is_llama_like(handle.causal_lm),
    )


def _handle(config: Any, spec: ModelSpec, learns: bool, dtype: torch.dtype) -> ModelHandle:
    """A model without numbers, held as :func:`coterie.agents.models.loading.load_team` holds it."""
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
    """A new adapter of the same size as one that is there."""
    if lora is None or lora.adapter is None:
        return lora
    from peft import LoraConfig

    config: Any = LoraConfig.from_pretrained(lora.adapter)
    return LoraSpec(config.r, config.lora_alpha)


def with_layers(config: Any, count: int) -> Any:
    """``config`` with ``count`` decoder blocks, or fewer where it has fewer."""
    plain = config.to_dict()
    less = type(config).from_dict(plain)
    text = less.get_text_config()
    if isinstance(kinds := getattr(text, "layer_types", None), list):
        text.layer_types = kinds[:count]
    text.num_hidden_layers = count
    return less


def measure(config: Any, spec: ModelSpec, load: Load, dtype: torch.dtype) -> int:
    """Most bytes that one micro-batch takes beside weights, gradients and moments."""
    handle = _handle(config, spec, True, dtype)
    own = list(handle.parameters().values())
    several = load.most > load.rows
    for parameter in own if several else ():
        # Left by the micro-batch before; of a first one, what is added up becomes the gradient.
        parameter.grad = torch.zeros_like(parameter)
    random = np.random.default_rng(0)
    ids_BT = torch.from_numpy(random.integers(0, handle.vocab_size, (load.rows, load.longest)))
    starts = [int(row * load.starts) for row in range(load.rows)]
    ids_BT[:, : load.prompt] = ids_BT[[starts.index(start) for start in starts], : load.prompt]
    answer = min(load.answer, load.longest - 1)
    if handle.packs and not (handle.tree_forward and handle.tree_forward.fits(ids_BT)):
        # Rows end to end take what two long ones do, and these are soon measured.
        several_rows = 2 if load.rows % 2 == 0 else 1
        ids_BT = torch.from_numpy(
            random.integers(0, handle.vocab_size, (several_rows, load.computed // several_rows))
        )
        answer = answer * load.rows // several_rows
    mask_BT = torch.zeros(len(ids_BT), ids_BT.shape[1] - 1, dtype=torch.bool)
    mask_BT[:, -answer:] = True
    living = _Living([*handle.module.parameters(), *handle.module.buffers()])
    living.ignore(p.grad for p in own if p.grad is not None)
    with _attention_without_scores(), handle.active(), living:
        if handle.packs or (handle.tree_forward and handle.tree_forward.fits(ids_BT)):
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
    # The gradients of the chunks that were left out, until they are put together.
    most = living.most + (len(hidden_NH) - few) * hidden_NH[:1].nbytes
    return most if several else max(0, most - sum(p.nbytes for p in own))


def _padded_states(handle: ModelHandle, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """:meth:`ModelHandle.scored_states` for a model whose rows are not packed."""
    ids = ids_BT.to("meta")
    # Numbers: masks are made by them.
    position_BT = torch.arange(ids.shape[1]).expand(ids.shape)
    with handle.backward_pass(ids.numel()):
        states = handle.backbone(ids, None, position_BT)[:, :-1]
    place_N = mask_BT.reshape(-1).nonzero()[:, 0].to("meta")
    return states.reshape(-1, states.shape[-1]).index_select(0, place_N)


class _Living(TorchDispatchMode):
    """Adds up the bytes of what operations make, as long as it lives. What meets a tensor of the
    ``meta`` device is moved there."""

    def __init__(self, known: list[Tensor]) -> None:
        super().__init__()
        self.most = 0
        self._now = 0
        self._seen: set[int] = set()
        self.ignore(known)

    def ignore(self, known: Iterator[Tensor] | list[Tensor]) -> None:
        """What is there already."""
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


def _attention_without_scores() -> AbstractContextManager[None]:
    """While open, attention keeps what the kernels of CPUs and GPUs keep for a backward pass; on
    the ``meta`` device torch would take the one that keeps every score."""
    # A mode of torch would be closed where a backward pass computes once more.
    return replaced(torch.nn.functional, "scaled_dot_product_attention", _attend)


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
    """Stands in for ``scaled_dot_product_attention``, with its arguments."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (k, v))
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return kernel(q, k, v, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]
