"""Surrogate losses for the negative expected advantage, token by token.

Legend: B rows, T tokens. ``advantage`` is (B, 1) or (B, T); ``sg`` is stop-gradient;
r = pi / pi_old of one token, s = the geometric mean of r over a row's own tokens.
"""

from functools import singledispatch
from typing import NamedTuple

import torch
from torch import Tensor

from coterie.algorithms.algorithm import (
    ClippedRatio,
    ClippedWeight,
    GateWeight,
    SequenceWeight,
    SoftGate,
)
from coterie.datatypes import UserError, raised

# Far outside every bound, and far from overflow: exp(20) = 4.9e8. Beyond it the gradient is 0.
_LOG_RATIO_LIMIT = 20.0


class Terms(NamedTuple):
    """Loss, ratio and clipping of each token; undefined outside the mask."""

    loss_BT: Tensor
    ratio_BT: Tensor
    """The importance ratio that the surrogate used; without gradient."""
    clipped_BT: Tensor
    """Whether a bound stopped or limited the token's gradient (bool)."""


def token_ratio(logp_BT: Tensor, old_BT: Tensor) -> Tensor:
    """Return pi / pi_old of each token, (B, T)."""
    return (logp_BT - old_BT).clamp(-_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT).exp()


def sequence_ratio(logp_BT: Tensor, old_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return exp of the mean log-ratio over a row's sampled tokens, (B, 1); without gradient."""
    log_ratio_BT = torch.where(mask_BT, (logp_BT - old_BT).detach(), 0.0)
    mean_B1 = log_ratio_BT.sum(-1, keepdim=True) / mask_BT.sum(-1, keepdim=True).clamp(min=1)
    return mean_B1.clamp(-_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT).exp()


def gate(ratio_BT: Tensor, advantage: Tensor, tau_positive: float, tau_negative: float) -> Tensor:
    """Return (4 / tau) sigmoid(tau (r - 1)); tau depends on the advantage's sign.
    arXiv:2511.20347"""
    tau = torch.where(advantage > 0, tau_positive, tau_negative)
    return torch.sigmoid(tau * (ratio_BT - 1)) * (4 / tau)


@singledispatch
def surrogate(
    choice: object, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """Compute the terms of ``choice``; ``surrogate.register`` adds another kind.

    Args:
        choice: the surrogate's settings, whose class selects the formula.
        logp_BT: log-probabilities, with a gradient.
        old_BT: log-probabilities before the first optimizer step of the training step.
        advantage: (B, 1), or (B, T) if each token has one.
        mask_BT: true on sampled tokens.

    Raises:
        TypeError: no formula is registered for this class.
    """
    raise TypeError(f"no surrogate is registered for {type(choice).__name__}")


@surrogate.register
def clipped_ratio(
    choice: ClippedRatio, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """-min(r A, clip(r) A), with r of the token or of the sequence; at most -dual A if A < 0."""
    if choice.level == "token":
        ratio_BT = token_ratio(logp_BT, old_BT)
    else:
        # s_t = sg(s) pi / sg(pi): the value of s, with a gradient by each token's own advantage.
        # GSPO-token, arXiv:2507.18071
        ratio_BT = sequence_ratio(logp_BT, old_BT, mask_BT) * (logp_BT - logp_BT.detach()).exp()
    low, high = 1 - choice.low, 1 + choice.high
    loss_BT = -torch.minimum(ratio_BT * advantage, ratio_BT.clamp(low, high) * advantage)
    above_BT = (ratio_BT > high) & (advantage > 0)
    if choice.dual is not None:
        # max(min(r A, clip(r) A), c A) where A < 0   dual clip, arXiv:1912.09729
        bounded_BT = torch.minimum(loss_BT, -choice.dual * advantage)
        loss_BT = torch.where(advantage < 0, bounded_BT, loss_BT)
        above_BT = above_BT | ((ratio_BT > choice.dual) & (advantage < 0))
    ratio_BT = ratio_BT.detach()
    clipped_BT = ((ratio_BT < low) & (advantage < 0)) | above_BT
    return Terms(loss_BT, ratio_BT, clipped_BT)


@surrogate.register
def soft_gate(
    choice: SoftGate, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """-f(r) A with the gradient through the gate; nothing is clipped."""
    ratio_BT = token_ratio(logp_BT, old_BT)
    weight_BT = gate(ratio_BT, advantage, choice.tau_positive, choice.tau_negative)
    return Terms(-weight_BT * advantage, ratio_BT.detach(), torch.zeros_like(mask_BT))


@surrogate.register
def clipped_weight(
    choice: ClippedWeight, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """-sg(min(r, high)) A log pi."""
    ratio_BT = token_ratio(logp_BT, old_BT).detach()
    loss_BT = -ratio_BT.clamp(max=choice.high) * advantage * logp_BT
    return Terms(loss_BT, ratio_BT, ratio_BT > choice.high)


@surrogate.register
def sequence_weight(
    choice: SequenceWeight, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """-sg(clip(s)) A log pi, whose token mean is clip(s) A mean_t log pi."""
    ratio_B1 = sequence_ratio(logp_BT, old_BT, mask_BT)
    weight_B1 = ratio_B1.clamp(1 - choice.low, 1 + choice.high)
    clipped_BT = (weight_B1 != ratio_B1).expand_as(mask_BT)
    return Terms(-weight_B1 * advantage * logp_BT, ratio_B1.expand_as(logp_BT), clipped_BT)


@surrogate.register
def gate_weight(
    choice: GateWeight, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """-sg(f(r)) A log pi. A gradient through the gate would change its sign for unlikely
    tokens."""
    ratio_BT = token_ratio(logp_BT, old_BT).detach()
    weight_BT = gate(ratio_BT, advantage, choice.tau_positive, choice.tau_negative)
    return Terms(-weight_BT * advantage * logp_BT, ratio_BT, torch.zeros_like(mask_BT))


def terms_of(
    choice: object, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """Call :func:`surrogate`; a formula of the user's may fail.

    Raises:
        UserError: it raises, or does not return three tensors (B, T).
    """
    if type(choice).__module__ == ClippedRatio.__module__:
        return surrogate(choice, logp_BT, old_BT, advantage, mask_BT)
    name = f"algo.surrogate {type(choice).__name__}"
    try:
        terms = surrogate(choice, logp_BT, old_BT, advantage, mask_BT)
    except (Exception, SystemExit) as error:
        raise UserError(f"{name} {raised(error)}") from error
    parts = tuple(terms) if isinstance(terms, Terms) else ()
    if [part.shape for part in parts if isinstance(part, Tensor)] != [logp_BT.shape] * 3:
        raise UserError(f"{name} must give coterie.algorithms.Terms: three tensors (B, T)")
    return terms
