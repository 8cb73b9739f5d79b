"""The handle of one role's causal language model: computation, adapters, saving, restoring."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from coterie.agents.models.blocks import Recomputation
from coterie.agents.models.damage import check_finite
from coterie.agents.models.family import tokens_kept
from coterie.agents.models.forward import TreeForward
from coterie.agents.models.forward.packed import (
    FAMILIES,
    SHARED_FROM,
    Packed,
    pack,
    packed_attention,
)
from coterie.agents.models.process import few_threads, quietly
from coterie.agents.models.quantized import count, plain_state
from coterie.agents.models.saving import CheckpointWriter, round_checkpoint, store
from coterie.agents.models.shards import Ranks, gather, shard_as
from coterie.datatypes import UserError

# B rows, T tokens, D model width, V vocabulary


@dataclass
class Switch:
    """The active adapter of a shared base; all roles of the base share one object."""

    state: tuple[str, bool] | None = None
    """(adapter, whether it is on) inside a context manager; None outside."""


class ModelHandle:
    """A causal language model of one role.

    With full weights ``module`` belongs to the role. With LoRA ``module`` is a peft model that
    several roles can share, each with its own adapter. The module is always in eval mode.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        tokenizer: Any,
        trained: bool,
        context: int,
        adapter: str | None = None,
        given: bool = False,
        switch: Switch | None = None,
        dtype: torch.dtype | None = None,
        recomputation: Recomputation | None = None,
        recompute: Literal["auto", "always", "never"] = "auto",
    ) -> None:
        """Args:
        module: a transformers model, or with an adapter a peft model.
        tokenizer: saved with full weights.
        trained: whether the role learns.
        context: longest context in tokens.
        adapter: name of the role's adapter; None: full weights.
        given: whether the adapter was loaded; a new one is the identity.
        switch: the switch of the base, shared by all of its roles.
        dtype: number format of the computation; None: that of the weights.
        recomputation: the activation checkpointing of the base's blocks.
        recompute: when the backward pass computes activations again.
        """
        self.module = module
        self.dtype = dtype or next(module.parameters()).dtype
        """Number format of the computation; trained full weights may be in float32."""
        self.adapter = adapter
        self._given = given
        self.trained = trained
        self.context = context
        """Longest context in tokens, prompt and answer together."""
        self.version = 0
        """Number of updates so far; whoever changes the weights increments it."""
        self.ranks = Ranks()
        """The processes that compute the updates together."""
        self._loads = 0
        self._writer = CheckpointWriter(module, tokenizer)
        self._switch = switch or Switch()
        self._recomputation = recomputation or Recomputation(self.causal_lm)
        self._recompute = recompute
        self.packs = self.causal_lm.config.model_type in FAMILIES
        """Whether rows are packed when the tree forward pass does not apply."""
        self.tree_forward = None
        if self.dtype == torch.float32 and TreeForward.supports(self.causal_lm):
            self.tree_forward = TreeForward(self.causal_lm)

    @property
    def causal_lm(self) -> Any:
        """The transformers model without peft's wrapper; adapters are inside it."""
        return self.module if self.adapter is None else self.module.get_base_model()  # type: ignore[operator]

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        return next(self.module.parameters()).device

    @property
    def vocab_size(self) -> int:
        """Width of the logits; the tokenizer may use fewer ids."""
        return int(self.causal_lm.config.get_text_config().vocab_size)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the model's weights, including adapters."""
        return sum(p.numel() * p.element_size() for p in self.module.parameters())

    @property
    def copy_bytes(self) -> int:
        """Bytes of the sampler's copy of the weights: codes of 8 bits are copied as they are, all
        others in the format of the computation."""
        in_8_bits = sum(p.numel() for p in self._base() if p.dtype == torch.int8)
        return self.plain_bytes - in_8_bits * (self.dtype.itemsize - 1)

    @property
    def in_8_bits(self) -> bool:
        """Whether layers multiply in 8 bits."""
        return any(p.dtype == torch.int8 for p in self._base())

    @property
    def plain_bytes(self) -> int:
        """Bytes of the weights without adapters, dequantized, in the format of the computation."""
        return sum(map(count, self._base())) * self.dtype.itemsize

    def _base(self) -> Iterator[nn.Parameter]:
        return (p for name, p in self.module.named_parameters() if ".lora_" not in name)

    @property
    def shares_from(self) -> int | None:
        """Minimum shared-prefix length worth computing once; None: rows are padded."""
        return SHARED_FROM if self.packs else None

    @property
    def stamp(self) -> tuple[int, int]:
        """A value that changes whenever the weights change."""
        return self.version, self._loads

    def parameters(self) -> dict[str, nn.Parameter]:
        """Return this role's trainable parameters, by names that do not depend on the role; none
        for a frozen role."""
        if not self.trained:
            return {}
        if self.adapter is None:
            return dict(self.module.named_parameters())
        mark = f".{self.adapter}."
        return {
            name.replace(mark, "."): p
            for name, p in self.module.named_parameters()
            if mark in name and ".lora_" in name
        }

    def backbone(
        self, input_ids: Tensor, position_ids: Tensor | None = None, **attention: Any
    ) -> Tensor:
        """Return last hidden states (B, T, D), in which every token sees all earlier ones. With
        LoRA the adapter is on, except inside :meth:`reference`.

        Args:
            input_ids: (B, T)
            position_ids: (B, T), (1, T), or None: 0 to T - 1.
            attention: passed on to the attention function.
        """
        with self._own_turn():
            lm = self.causal_lm
            out = getattr(lm, lm.base_model_prefix)(
                input_ids=input_ids,
                position_ids=position_ids,
                use_cache=False,
                **attention,
            )
            return out.last_hidden_state

    def scored_states(self, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Return last hidden states of the N scored positions, (N, D), row by row.

        Args:
            ids_BT: (B, T) rows, padded on the right.
            mask_BT: (B, T - 1), true where the token after a position is scored.
        """
        if self.tree_forward is not None and self.takes_tree(ids_BT):
            with self._own_turn():
                return self.tree_forward(ids_BT, mask_BT)
        if self.packs:
            return self._packed_states(pack(ids_BT.cpu().numpy(), mask_BT.cpu().numpy()))
        positions_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device).expand_as(ids_BT)
        with self.backward_pass(ids_BT.numel()):
            return self.backbone(ids_BT, positions_BT)[:, :-1][mask_BT]

    def takes_tree(self, ids_BT: Tensor) -> bool:
        """Whether :class:`TreeForward`, which keeps all activations, computes this batch."""
        tree = self.tree_forward
        return tree is not None and tree.fits(ids_BT) and not self.recomputes(ids_BT.numel())

    def _packed_states(self, rows: Packed) -> Tensor:
        ids_1S, position_1S, scored_N = (
            torch.from_numpy(x).to(self.device)
            for x in (rows.ids_S[None], rows.position_S[None], rows.scored_N)
        )

        def attention() -> AbstractContextManager[None]:
            return packed_attention(self.causal_lm.config)

        with self.backward_pass(ids_1S.numel(), attention), attention():
            states_1SD = self.backbone(ids_1S, position_1S, packed=rows)
            return states_1SD[0].index_select(0, scored_N)

    @contextmanager
    def backward_pass(
        self, tokens: int, within: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Iterator[None]:
        """Prepare forward passes over ``tokens`` tokens inside the block for their backward pass;
        ``within`` is the context in which blocks are recomputed."""
        self._recomputation.on, self._recomputation.within = self.recomputes(tokens), within
        try:
            yield
        finally:
            self._recomputation.on = False

    def recomputes(self, tokens: int) -> bool:
        """Whether a backward pass over ``tokens`` tokens recomputes activations."""
        return self._recompute == "always" or (
            self._recompute == "auto" and tokens > self._tokens_kept
        )

    @property
    def uncheckpointed_tokens(self) -> int | None:
        """Tokens of a micro-batch whose activations fit without recomputation, on a CPU, which is
        as fast with few rows as with many; None: elsewhere, or if recomputation is fixed."""
        if self.device.type != "cpu" or self._recompute != "auto":
            return None
        return self._tokens_kept

    @property
    def _tokens_kept(self) -> int:
        return tokens_kept(self.causal_lm.config.get_text_config(), self.dtype.itemsize)

    def head(self, hidden: Tensor) -> Tensor:
        """Return logits (..., V) of hidden states (..., D), scaled or capped like the model's."""
        lm = self.causal_lm
        config = lm.config.get_text_config()
        logits = lm.get_output_embeddings()(hidden)
        if (multiply := getattr(config, "logit_scale", None)) is not None:  # Cohere
            logits = logits * multiply
        if (divide := getattr(config, "logits_scaling", None)) is not None:  # Granite
            logits = logits / divide
        if (cap := getattr(config, "final_logit_softcapping", None)) is not None:  # Gemma
            logits = cap * torch.tanh(logits / cap)
        return logits

    @property
    def head_learns(self) -> bool:
        """Whether a weight of the head is trainable."""
        return any(p.requires_grad for p in self.causal_lm.get_output_embeddings().parameters())

    @contextmanager
    def active(self) -> Iterator[None]:
        """Use this role's adapter inside the block. Tiny models on a CPU compute on one thread."""
        with self._turn(on=True), few_threads(self.device, self.weight_bytes):
            yield

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Use the weights from before training inside the block: the adapter is off.

        Raises:
            NotImplementedError: the role has full weights or a loaded adapter, which have no copy.
        """
        if self.adapter is None or self._given:
            raise NotImplementedError("no copy of the weights before training is kept")
        with self._turn(on=False), few_threads(self.device, self.weight_bytes):
            yield

    def save(self, directory: Path | str, dtype: torch.dtype | None = None) -> None:
        """Write this role's weights: a checkpoint in the hub's format with its tokenizer, or an
        adapter in peft's format, as safetensors and JSON. Of several ranks only the first writes.

        Args:
            directory: created if missing; files of the same names are overwritten.
            dtype: full weights are rounded to this format; None: they keep theirs.
        """
        folder = Path(directory)
        module: Any = self.module
        if self.adapter is None:
            # keep_vars preserves identity, so that tied parameters are gathered and stored once.
            state = gather(module.state_dict(keep_vars=True))
        else:
            from peft import get_peft_model_state_dict

            state = gather(get_peft_model_state_dict(module, adapter_name=self.adapter))
        folder.mkdir(parents=True, exist_ok=True)
        if self.ranks.rank:
            return
        if self.adapter is None:
            self._writer.write(folder, state)
            if dtype not in (None, module.dtype):
                round_checkpoint(folder, dtype)
        else:
            store(state, folder / "adapter_model.safetensors")
            module.peft_config[self.adapter].save_pretrained(str(folder))

    def take(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Copy ``weights``, by the names of :meth:`parameters`, after ``version`` updates."""
        with torch.no_grad():
            for name, parameter in self.parameters().items():
                parameter.copy_(weights[name])
        self.version = version
        self._loads += 1

    def save_base(self, directory: Path) -> None:
        """Write the base model without adapters as a checkpoint in the hub's format, without a
        tokenizer. Quantized weights are written in the format of the computation."""
        state = {
            name.replace(".base_layer.", "."): tensor
            for name, tensor in plain_state(self.causal_lm).items()
            if ".lora_" not in name
        }
        with quietly():
            self.causal_lm.save_pretrained(directory, state_dict=state)

    def load_weights(self, directory: Path | str) -> None:
        """Restore the weights that :meth:`save` wrote, bit for bit.

        Raises:
            UserError: the folder does not contain such weights.
        """
        folder = Path(directory)
        self._loads += 1
        if self.adapter is None:
            self._load_full(folder)
        else:
            load_adapter(self.module, folder, self.adapter)

    def _load_full(self, folder: Path) -> None:
        module: Any = self.module
        if not (folder / "config.json").is_file():
            raise UserError(f"{folder} holds no checkpoint of full weights: no config.json")
        with quietly():
            stored = type(module).from_pretrained(
                folder, dtype=module.dtype, use_safetensors=True, local_files_only=True
            )
        saved = stored.state_dict()
        own = module.state_dict()
        if {k: v.shape for k, v in saved.items()} != {k: v.shape for k, v in own.items()}:
            raise UserError(f"{folder} holds the weights of another architecture")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(shard_as(saved[name], tensor))

    @contextmanager
    def _turn(self, *, on: bool) -> Iterator[None]:
        if self.adapter is None:
            yield
            return
        before, wanted = self._switch.state, (self.adapter, on)
        self._set(wanted)
        try:
            yield
        finally:
            self._switch.state = before
            if before is not None:
                self._set(before)

    @contextmanager
    def _own_turn(self) -> Iterator[None]:
        state = self._switch.state
        if state is None:
            with self._turn(on=True):
                yield
        elif state[0] == self.adapter:
            yield
        else:
            raise RuntimeError(f"the shared base answers for {state[0]!r}, not {self.adapter!r}")

    def _set(self, state: tuple[str, bool]) -> None:
        from peft.tuners.tuners_utils import BaseTunerLayer

        adapter, on = state
        self._switch.state = state
        for part in self.module.modules():
            if isinstance(part, BaseTunerLayer):
                # Before set_adapter: enabling makes the layer's current adapter trainable.
                if part.disable_adapters == on:
                    part.enable_adapters(on)
                if on:
                    part.set_adapter(adapter, inference_mode=not self.trained)


def load_adapter(module: Any, folder: Path, adapter: str) -> None:
    """Copy the adapter in ``folder`` (peft's format) into the adapter ``adapter`` of ``module``.

    Raises:
        UserError: names or shapes differ.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors.torch import load_file

    path = folder / "adapter_model.safetensors"
    if not path.is_file():
        raise UserError(f"{folder} holds no adapter: adapter_model.safetensors is missing")
    saved = load_file(path)
    check_finite(saved, str(folder), folder)
    own = get_peft_model_state_dict(module, adapter_name=adapter)
    if {k: v.shape for k, v in saved.items()} != {k: v.shape for k, v in own.items()}:
        raise UserError(f"{folder} holds an adapter for other layers or of another rank")
    saved = {name: shard_as(tensor, own[name]) for name, tensor in saved.items()}
    set_peft_model_state_dict(module, saved, adapter_name=adapter)
