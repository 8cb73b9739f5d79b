"""Log-probabilities under a model that is trained, without a (tokens x vocabulary) tensor.

Legend: B rows, T tokens, N scored positions, H model width, V vocabulary.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from coterie.algorithms.batching import Batch
from coterie.models.shards import Ranks

Head = Callable[[Tensor], Tensor]

# Logits that may exist at once: 64 MiB in float32, beside as much for their softmax.
LOGITS_AT_ONCE = 1 << 24


class TrainableModel(Protocol):
    """What a learner needs of one role's causal language model, or its adapter on a shared one."""

    version: int
    """Number of updates so far; the learner counts it up."""
    context: int
    """Longest context in tokens."""
    ranks: Ranks
    """The processes that compute its updates together."""

    @property
    def device(self) -> torch.device:
        """Where inputs must be."""
        ...

    @property
    def shares_from(self) -> int | None:
        """Tokens from which on a start that rows of a batch have in common is computed once, where
        rows stand end to end; None: they are padded."""
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


def score(
    hidden_NH: Tensor,
    target_N: Tensor,
    head: Head,
    *,
    temperature: float,
    entropy_gradient: bool = False,
    logits_at_once: int = LOGITS_AT_ONCE,
) -> tuple[Tensor, Tensor]:
    """(N,) log-probabilities of ``target_N`` and (N,) entropies (nats), in float32.

    Logits are divided by the sampling ``temperature``. Where they would be more than
    ``logits_at_once``, they are computed in chunks and once more in the backward pass.
    """

    def chunk(hidden_CH: Tensor, target_C: Tensor) -> tuple[Tensor, Tensor]:
        logp_CV = (head(hidden_CH).float() / temperature).log_softmax(-1)
        logp_C = logp_CV.gather(-1, target_C[:, None]).squeeze(-1)
        for_entropy_CV = logp_CV if entropy_gradient else logp_CV.detach()
        # A probability of 0 has log -inf; its share of the entropy is 0, not NaN.
        finite_CV = for_entropy_CV.clamp(min=torch.finfo(torch.float32).min)
        return logp_C, -(for_entropy_CV.exp() * finite_CV).sum(-1)

    # An empty product tells the width of the head without computing anything.
    vocabulary = head(hidden_NH[:0]).shape[-1]
    size = max(1, logits_at_once // vocabulary)
    if len(target_N) <= size:
        return chunk(hidden_NH, target_N)
    parts = [
        checkpoint(chunk, hidden_CH, target_C, use_reentrant=False, preserve_rng_state=False)
        for hidden_CH, target_C in zip(hidden_NH.split(size), target_N.split(size))
    ]
    return torch.cat([logp for logp, _ in parts]), torch.cat([entropy for _, entropy in parts])


def batch_logprobs(
    model: TrainableModel, batch: Batch, *, temperature: float, entropy_gradient: bool = False
) -> tuple[Tensor, Tensor]:
    """(B, T - 1) log-probabilities and entropies, 0 outside the mask; the head sees masked
    positions only."""
    ids_BT, mask_BT = batch.ids_BT, batch.mask_BT

    def compute() -> tuple[Tensor, Tensor]:
        logp_N, entropy_N = score(
            model.scored_states(ids_BT, mask_BT),
            ids_BT[:, 1:][mask_BT],
            model.head,
            temperature=temperature,
            entropy_gradient=entropy_gradient,
        )
        empty_BT = torch.zeros(mask_BT.shape, device=logp_N.device)
        return empty_BT.masked_scatter(mask_BT, logp_N), empty_BT.masked_scatter(mask_BT, entropy_N)

    return model.ranks.forward(compute)
