"""The interface between the sampling loop and a model with a key-value cache, for any causal LM."""

from inspect import signature
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import DynamicCache

# P distinct prompts, B rows, V vocabulary


class Decoder(Protocol):
    """A model that decodes one batch of rows."""

    def prefill(self, prompts: list[list[int]], fork_B: list[int], room: int) -> Tensor:
        """(B, V) logits of every row's first new token; each distinct prompt is read once.

        Args:
            prompts: P lists of ids.
            fork_B: the prompt that each row continues.
            room: new tokens of a row, at most.
        """
        ...

    def step(self, tokens_B: Tensor) -> Tensor:
        """Append one token to every row; (B, V) logits of the next."""
        ...

    def drop(self, holes_N: Tensor, movers_N: Tensor, rows: int) -> None:
        """Keep the first ``rows`` rows after moving row ``movers_N[i]`` to ``holes_N[i]``."""
        ...


# P distinct prompts, B rows, T cached positions, V vocabulary


class GenericDecoder:
    """Implements :class:`Decoder` for architectures that the fused one does not support."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model
        self._device = device
        # State-space models have no attention, and another name for what they remember.
        self._stateful = "cache_params" in signature(model.forward).parameters

    def prefill(self, prompts: list[list[int]], fork_B: list[int], room: int) -> Tensor:
        longest = max(map(len, prompts))
        # Padded on the left: every row's newest token then lies in the same column.
        ids_PT = torch.tensor([[0] * (longest - len(p)) + p for p in prompts], device=self._device)
        pad_P = torch.tensor([longest - len(p) for p in prompts], device=self._device)
        columns_T = torch.arange(longest, device=self._device)
        mask_PT = (columns_T >= pad_P[:, None]).long()
        self._cache: Any = DynamicCache(config=self._model.config)
        logits_PV = self._forward(ids_PT, mask_PT, (columns_T - pad_P[:, None]).clamp(min=0))
        fork = torch.tensor(fork_B, device=self._device)
        self._cache.reorder_cache(fork)
        self._mask_BT = mask_PT[fork]
        self._position_B = longest - pad_P[fork]
        return logits_PV[fork]

    def step(self, tokens_B: Tensor) -> Tensor:
        ones_B1 = torch.ones_like(self._mask_BT[:, :1])
        self._mask_BT = torch.cat([self._mask_BT, ones_B1], 1)
        # What does not look back wants a mask for the tokens that are read now, which are real.
        mask = None if self._stateful else self._mask_BT
        logits_BV = self._forward(tokens_B[:, None], mask, self._position_B[:, None])
        self._position_B = self._position_B + 1
        return logits_BV

    def drop(self, holes_N: Tensor, movers_N: Tensor, rows: int) -> None:
        keep = torch.arange(rows, device=self._device)
        keep[holes_N] = movers_N
        self._cache.reorder_cache(keep)
        self._mask_BT, self._position_B = self._mask_BT[keep], self._position_B[keep]

    def _forward(self, ids: Tensor, mask: Tensor | None, positions: Tensor) -> Tensor:
        # A number would slice, and a product with a slice copies all weights of the head for every
        # row: 40 GB for 128 rows and 262 thousand tokens. An index copies the positions.
        newest = torch.tensor([ids.shape[1] - 1], device=self._device)
        out = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=newest,
            **{"cache_params" if self._stateful else "past_key_values": self._cache},
        )
        return out.logits[:, -1]
