"""The loss of one micro-batch, as its part of the loss of a whole optimizer step.

The loss is a sum of weighted tokens whose denominators belong to the whole step, so the split into
micro-batches does not change it. Denominators count agents of episodes: several rows of one agent
(one for each context) weigh as much as the only row of another.

Legend: B rows, T tokens (the scored ones: the width of the mask); d = log pi - log pi_ref;
delta = the trainer's log pi_old - the sampler's log pi, which differ by rounding; rho = exp(delta).
A sampler that does not know a log-probability reports NaN; delta is then 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from coterie.algorithms.algorithm import Algorithm, Reduction
from coterie.algorithms.batching import Batch, by_agent, scored_tokens
from coterie.algorithms.surrogates import Terms, terms_of, token_ratio
from coterie.datatypes import Trajectory

Correction = Literal["none", "token-truncate", "token-mask", "sequence-truncate", "sequence-mask"]
SUMS = ("tokens", "ratio", "clipped", "entropy", "kl", "delta", "k3", "capped", "rho", "rho2")

# The constant of constant-length where there is no environment. What matters is that it does not
# depend on the row.
_LENGTH = 256
# exp of 20 nats is 5e8, too large to be useful under any coefficient or cap.
_LIMIT = 20.0


@dataclass(frozen=True)
class Totals:
    """Denominators of a whole optimizer step."""

    agents: int
    """Agents of episodes; all rows of an agent count as one."""
    tokens: int


def denominators(
    rows: Sequence[Trajectory], part: Sequence[int]
) -> tuple[Totals, dict[int, float]]:
    """Return what an optimizer step on ``part`` divides by: its totals, and index of a row -> the
    tokens of its agent."""
    agents = by_agent([rows[i] for i in part])
    agent_tokens: dict[int, float] = {}
    for agent in agents:
        tokens = sum(scored_tokens(rows[part[i]]) for i in agent)
        agent_tokens |= {part[i]: float(tokens) for i in agent}
    return Totals(len(agents), sum(scored_tokens(rows[i]) for i in part)), agent_tokens


@dataclass(frozen=True)
class PartialLoss:
    """A micro-batch's share of a step; the shares of all micro-batches add up."""

    loss: Tensor
    sums: Tensor
    """(10,) sums over tokens, in the order of ``SUMS``; without gradient."""
    peaks: Tensor
    """(2,) largest importance ratio and largest absolute delta."""


class Importance(NamedTuple):
    """Importance weights on the loss, and their ingredients."""

    weight_BT: Tensor
    delta_BT: Tensor
    """0 outside the mask."""
    capped_BT: Tensor
    """Whether the cap changed a token's weight (bool)."""


def objective(
    logp_BT: Tensor,
    entropy_BT: Tensor,
    old_BT: Tensor,
    ref_BT: Tensor | None,
    batch: Batch,
    algorithm: Algorithm,
    totals: Totals,
    *,
    agent_tokens_B: Tensor | None = None,
    gain_BT: Tensor | None = None,
    correction: Correction = "none",
    cap: float = 2.0,
) -> PartialLoss:
    """Compute this micro-batch's part of the step's loss.

    A row's loss weight multiplies its loss and enters no denominator. The importance correction
    applies to the surrogate only.

    Args:
        logp_BT: log-probabilities under the current weights.
        entropy_BT: in nats.
        old_BT: log-probabilities before the first optimizer step of the training step.
        ref_BT: log-probabilities of the reference; None without a KL penalty.
        batch: the rows.
        algorithm: surrogate, reduction and penalties.
        totals: denominators of the whole optimizer step.
        agent_tokens_B: see :func:`token_weights`.
        gain_BT: the expected difference from the batch's reader, which is maximised
            (:func:`coterie.algorithms.distillation.expected_difference`).
        correction: how disagreement of sampler and trainer is corrected.
        cap: largest importance weight.
    """
    mask_BT = batch.mask_BT
    terms = terms_of(algorithm.surrogate, logp_BT, old_BT, batch.advantage_BT, mask_BT)
    correct = importance(old_BT, batch.sampler_BT, mask_BT, correction, cap)
    loss_BT = terms.loss_BT * correct.weight_BT
    kl_BT = None
    if ref_BT is not None:
        kl_BT = divergence(logp_BT, ref_BT, algorithm.kl_estimator)
        if algorithm.kl_importance:
            kl_BT = kl_BT * token_ratio(logp_BT, old_BT)
        loss_BT = loss_BT + algorithm.kl_coefficient * kl_BT
    if gain_BT is not None:
        loss_BT = loss_BT - gain_BT
    weights_BT = token_weights(
        mask_BT,
        algorithm.reduction,
        agents=totals.agents,
        tokens=totals.tokens,
        length=algorithm.length or _LENGTH,
        agent_tokens_B=agent_tokens_B,
    )
    # Select before weighting: an infinity times weight 0 would be NaN.
    loss_BT = torch.where(mask_BT, loss_BT, 0.0)
    loss = (loss_BT * weights_BT * batch.weight_B[:, None]).sum()
    if algorithm.entropy_coefficient:
        bonus = (entropy_BT * mask_BT * batch.weight_B[:, None]).sum() / totals.tokens
        loss = loss - algorithm.entropy_coefficient * bonus
    return PartialLoss(loss, *_statistics(terms, correct, entropy_BT, kl_BT, mask_BT))


def token_weights(
    mask_BT: Tensor,
    reduction: Reduction,
    *,
    agents: int,
    tokens: int,
    length: int = 0,
    agent_tokens_B: Tensor | None = None,
) -> Tensor:
    """Return weights (B, T), 0 outside the mask; the reduced loss is ``(weights * loss).sum()``.

    Args:
        mask_BT: true on sampled tokens.
        agents: agents of episodes in the whole optimizer step; y_i are all sampled tokens of agent
            i, in all of its rows.
        tokens: sampled tokens in the whole optimizer step.
        length: the constant of ``constant-length``.
        agent_tokens_B: |y_i| of each row's agent; None: every agent has one row.
    """
    mask_BT = mask_BT.float()
    match reduction:
        case "sequence-mean":  # 1/B sum_i 1/|y_i| sum_t        GRPO, arXiv:2402.03300
            length_B = mask_BT.sum(-1) if agent_tokens_B is None else agent_tokens_B
            return mask_BT / (length_B[:, None].clamp(min=1) * agents)
        case "token-mean":  # 1/sum_i |y_i| sum_i sum_t         DAPO, arXiv:2503.14476
            return mask_BT / tokens
        case "constant-length":  # 1/(B L) sum_i sum_t          Dr. GRPO, arXiv:2503.20783
            return mask_BT / (agents * length)


def divergence(logp_BT: Tensor, ref_BT: Tensor, estimator: Literal["k1", "k2", "k3"]) -> Tensor:
    """Return token-wise estimates (B, T) of KL(pi || pi_ref) from samples of pi (J. Schulman,
    "Approximating KL divergence")."""
    d_BT = logp_BT - ref_BT
    match estimator:
        case "k1":  # unbiased, of either sign
            return d_BT
        case "k2":  # biased, and its gradient is that of the divergence
            return d_BT**2 / 2
        case "k3":  # unbiased, never negative
            return (-d_BT).clamp(max=_LIMIT).exp() - 1 + d_BT


def importance(
    old_BT: Tensor, sampler_BT: Tensor, mask_BT: Tensor, correction: Correction, cap: float
) -> Importance:
    """Return importance weights pi_old / pi_sampler; above ``cap`` they become ``cap`` or 0.

    This is truncated or masked importance sampling by token or by sequence (compared in
    arXiv:2510.18927). A sequence's rho is the product over its sampled tokens.

    Args:
        old_BT: the trainer's log-probabilities.
        sampler_BT: the sampler's log-probabilities; NaN if unknown.
        mask_BT: true on sampled tokens.
        correction: level and kind of the bound; with ``none`` all weights are 1.
        cap: largest weight, at least 1.
    """
    known_BT = mask_BT & ~sampler_BT.isnan()
    delta_BT = torch.where(known_BT, old_BT.detach() - sampler_BT, 0.0)
    if correction == "none":
        return Importance(torch.ones_like(delta_BT), delta_BT, torch.zeros_like(mask_BT))
    level, kind = correction.split("-")
    log_rho = delta_BT if level == "token" else delta_BT.sum(-1, keepdim=True).expand_as(delta_BT)
    rho_BT = log_rho.clamp(-_LIMIT, _LIMIT).exp()
    over_BT = rho_BT > cap
    weight_BT = rho_BT.masked_fill(over_BT, cap if kind == "truncate" else 0.0)
    return Importance(weight_BT, delta_BT, over_BT & mask_BT)


def effective_share(sum_rho: float, sum_rho_squared: float, tokens: float) -> float:
    """Return the effective sample size as a share of N samples: (sum rho)^2 / (N sum rho^2)."""
    return sum_rho**2 / (tokens * sum_rho_squared) if tokens and sum_rho_squared else 1.0


def _statistics(
    terms: Terms, correct: Importance, entropy_BT: Tensor, kl_BT: Tensor | None, mask_BT: Tensor
) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        size_BT = correct.delta_BT.abs()
        rho_BT = correct.delta_BT.clamp(-_LIMIT, _LIMIT).exp()
        k3_BT = rho_BT - 1 - correct.delta_BT
        ratio_BT = terms.ratio_BT.expand_as(size_BT)
        columns = {
            "tokens": torch.ones_like(size_BT),
            "ratio": ratio_BT,
            "clipped": terms.clipped_BT,
            "entropy": entropy_BT,
            "kl": torch.zeros_like(size_BT) if kl_BT is None else kl_BT,
            "delta": size_BT,
            "k3": k3_BT,
            "capped": correct.capped_BT,
            "rho": rho_BT,
            "rho2": rho_BT**2,
        }
        sums = torch.stack([torch.where(mask_BT, columns[name], 0.0).sum() for name in SUMS])
        peaks = torch.stack([torch.where(mask_BT, x, 0.0).max() for x in (ratio_BT, size_BT)])
        return sums, peaks


def describe(sums: Tensor, peaks: Tensor) -> dict[str, float]:
    """Turn the sums and peaks of a step into metrics; empty if no token was scored."""
    total = dict(zip(SUMS, sums.tolist(), strict=True))
    ratio_max, delta_max = peaks.tolist()
    tokens = total.pop("tokens")
    if not tokens:
        return {}
    mean = {name: value / tokens for name, value in total.items()}
    return {
        "ratio/mean": mean["ratio"],
        "ratio/max": ratio_max,
        "clip_fraction": mean["clipped"],
        "entropy": mean["entropy"],
        "kl": mean["kl"],
        "mismatch/mean": mean["delta"],
        "mismatch/max": delta_max,
        "mismatch/k3": mean["k3"],
        "mismatch/ess": effective_share(total["rho"], total["rho2"], tokens),
        "mismatch/capped": mean["capped"],
    }
