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

    def scored_states(self, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """(N, H) hidden states for the head at the positions where ``mask_BT`` (B, T - 1) is true:
        those whose next token is scored, row by row. Rows are padded on the right."""
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
