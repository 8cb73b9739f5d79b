"""Score sampled tokens with the learner.

Legend: B rows, T tokens, N scored positions, C positions of a chunk, H model width, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.agents.models.handle import ModelHandle
from coterie.algorithms.batching import micro_batches, pad, scored_tokens
from coterie.algorithms.logprobs import Head, at_once, score
from coterie.datatypes import Trajectory

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TokenScores:
    """Scores of one role's sampled tokens, all (N,)."""

    sampler_N: Floats
    """The sampler's log-probabilities; NaN where unknown."""
    learner_N: Floats
    """The learner's log-probabilities."""
    entropy_N: Floats
    """Entropy of the learner's distribution at each position."""
    variance_N: Floats
    """Variance of log p under that distribution."""


@torch.no_grad()
def rescore(
    handle: ModelHandle, rows: Sequence[Trajectory], *, temperature: float, budget: int
) -> TokenScores | None:
    """Run the learner's forward pass over a role's ``rows``, which were sampled at ``temperature``,
    with ``budget`` tokens at once. Returns None if no token was sampled."""
    use = [row for row in rows if row.trainable and scored_tokens(row)]
    if not use:
        return None
    parts: list[list[Tensor]] = []
    with handle.active():
        for chosen in micro_batches(use, budget, shares_from=handle.shares_from):
            batch = pad([use[i] for i in chosen], np.zeros(len(chosen)), handle.device)
            hidden_NH = handle.scored_states(batch.ids_BT, batch.mask_BT)
            target_N = batch.ids_BT[:, 1:][batch.mask_BT]
            scores = score(hidden_NH, target_N, handle.head, temperature=temperature)
            variance_N = variance(hidden_NH, handle.head, temperature=temperature)
            parts.append(
                [batch.sampler_BT[batch.mask_BT], scores.logp_N, scores.entropy_N, variance_N]
            )
    return TokenScores(*(torch.cat(column).double().cpu().numpy() for column in zip(*parts)))


def variance(hidden_NH: Tensor, head: Head, *, temperature: float) -> Tensor:
    """(N,) Var[log p] = E[(log p)^2] - H^2 under p itself, in float32."""
    parts = []
    for hidden_CH in hidden_NH.split(at_once(head, hidden_NH)):
        logp_CV = (head(hidden_CH).float() / temperature).log_softmax(-1)
        # The log of a probability of 0 is -inf; its contribution must be 0, not NaN.
        p_CV, logp_CV = logp_CV.exp(), logp_CV.clamp(min=-1e4)
        mean_C1 = (p_CV * logp_CV).sum(-1, keepdim=True)
        parts.append((p_CV * (logp_CV - mean_C1) ** 2).sum(-1))
    return torch.cat(parts)
