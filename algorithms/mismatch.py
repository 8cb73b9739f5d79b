"""Sampler and trainer disagree a little about the same weights: measure it, correct for it.

Legend: B rows, T tokens; delta = the trainer's log pi_old - the sampler's log pi; rho = exp(delta).
A sampler that cannot tell a log-probability says NaN; such a token has delta 0.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Correction = Literal["none", "token-truncate", "token-mask", "sequence-truncate", "sequence-mask"]
_LIMIT = 20.0


class Correct(NamedTuple):
    """Weights on the loss, and what they are made of."""

    weight_BT: Tensor
    delta_BT: Tensor
    """0 outside the mask."""
    capped_BT: Tensor
    """Tokens whose weight the cap changed (bool)."""


def importance(
    old_BT: Tensor, sampler_BT: Tensor, mask_BT: Tensor, correction: Correction, cap: float
) -> Correct:
    """Importance weights pi_old / pi_sampler, bounded by ``cap`` or 0 above it.

    Truncated importance sampling per token or per sequence (arXiv:2510.18927 compares them); a
    sequence's rho is the product over its own tokens.
    """
    known_BT = mask_BT & ~sampler_BT.isnan()
    delta_BT = torch.where(known_BT, old_BT.detach() - sampler_BT, 0.0)
    if correction == "none":
        return Correct(torch.ones_like(delta_BT), delta_BT, torch.zeros_like(mask_BT))
    level, kind = correction.split("-")
    log_rho = delta_BT if level == "token" else delta_BT.sum(-1, keepdim=True).expand_as(delta_BT)
    rho_BT = log_rho.clamp(-_LIMIT, _LIMIT).exp()
    over_BT = rho_BT > cap
    weight_BT = rho_BT.masked_fill(over_BT, cap if kind == "truncate" else 0.0)
    return Correct(weight_BT, delta_BT, over_BT & mask_BT)


def effective_share(sum_rho: float, sum_rho_squared: float, tokens: float) -> float:
    """Effective sample size as a share of the samples: (sum rho)^2 / (N sum rho^2)."""
    return sum_rho**2 / (tokens * sum_rho_squared) if tokens and sum_rho_squared else 1.0
