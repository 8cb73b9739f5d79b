"""What a learner needs of a model."""

from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor, nn


class TrainableModel(Protocol):
    """One role's causal language model, or its adapter on a shared one.

    Legend: B rows, T tokens, H model width, V vocabulary, N positions.
    """

    version: int
    """Number of updates so far; the learner counts it up."""

    @property
    def device(self) -> torch.device:
        """Where inputs must be."""
        ...

    def parameters(self) -> dict[str, nn.Parameter]:
        """This role's own trainable parameters; names are stable between runs."""
        ...

    def backbone(
        self, input_ids: Tensor, attention_mask: Tensor | None, position_ids: Tensor | None
    ) -> Tensor:
        """(B, T, H) hidden states for the head; all inputs are (B, T). Causal, so that padding on
        the right changes nothing to its left and needs no mask."""
        ...

    def head(self, hidden: Tensor) -> Tensor:
        """(N, V) logits of (N, H) hidden states."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """While open, this role's adapter is the one that computes."""
        ...

    def reference(self) -> AbstractContextManager[None]:
        """While open, the model is what it was before training (LoRA: adapter off).

        Raises:
            NotImplementedError: no copy is kept (full weights); the learner then keeps its own.
        """
        ...
