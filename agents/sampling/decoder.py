"""The interface of decoders to the sampling loop, and a decoder for any causal language model."""

from inspect import signature
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import DynamicCache

# P distinct prompts, B rows, T cached positions, V vocabulary


class Decoder(Protocol):
    """A model that decodes one batch of rows."""

    def prefill(self, prompts: list[list[int]], fork_B: list[int], room: int) -> Tensor:
        """Compute each distinct prompt once; return the logits of every row's first token, (B, V).

        Args:
            prompts: P lists of ids.
            fork_B: number of the prompt that each row continues.
            room: most new tokens of a row.
        """
        ...

    def step(self, tokens_B: Tensor) -> Tensor:
        """Append a token to every row; return the logits of the next one, (B, V)."""
        ...

    def drop(self, holes_N: Tensor, movers_N: Tensor, rows: int) -> None:
        """Keep the first ``rows`` rows after moving row ``movers_N[i]`` to ``holes_N[i]``."""
        ...


class GenericDecoder:
    """Implements :class:`Decoder` for all architectures, by the model's own forward pass."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model
        self._device = device
        # State-space models have another name for their cache.
        self._stateful = "cache_params" in signature(model.forward).parameters

    def prefill(self, prompts: list[list[int]], fork_B: list[int], room: int) -> Tensor:
        longest = max(map(len, prompts))
        # Padding on the left puts every row's newest token into the same column.
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
        # State-space models take a mask of the current tokens, none of which is padding.
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
        # An int would slice, and the product with a slice copies the head's weights for every row:
        # 40 GB for 128 rows and 262 thousand tokens. An index copies only the positions.
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
