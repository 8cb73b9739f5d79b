"""Log-probabilities of tokens from hidden states, without a (tokens x vocabulary) tensor.

Legend: B rows, T tokens, N scored positions, H model width, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from algorithms.batching import Batch
from algorithms.logprobs import TrainableModel

Head = Callable[[Tensor], Tensor]

# Logits that may exist at once: 64 MiB in float32, beside as much for their softmax.
_LOGITS_AT_ONCE = 1 << 24


def score(
    hidden_NH: Tensor,
    target_N: Tensor,
    head: Head,
    *,
    temperature: float,
    entropy_gradient: bool = False,
    logits_at_once: int = _LOGITS_AT_ONCE,
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
    logp_N, entropy_N = score(
        model.scored_states(ids_BT, mask_BT),
        ids_BT[:, 1:][mask_BT],
        model.head,
        temperature=temperature,
        entropy_gradient=entropy_gradient,
    )
    empty_BT = torch.zeros(mask_BT.shape, device=logp_N.device)
    return empty_BT.masked_scatter(mask_BT, logp_N), empty_BT.masked_scatter(mask_BT, entropy_N)
