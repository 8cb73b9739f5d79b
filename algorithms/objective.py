"""The loss of one micro-batch, as its part of the loss of a whole optimizer step.

Legend: B rows, T tokens (the scored ones: the width of the mask).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from algorithms.algorithm import Algorithm
from algorithms.batching import Batch
from algorithms.objective import divergence
from algorithms.objective import Correct, Correction, effective_share, importance
from algorithms.objective import token_weights
from algorithms.surrogates import Terms, surrogate, token_ratio


@dataclass(frozen=True)
class Totals:
    """Denominators of a whole optimizer step."""

    rows: int
    tokens: int


@dataclass(frozen=True)
class Part:
    """A micro-batch's share of a step: the parts of all micro-batches add up."""

    loss: Tensor
    sums: Tensor
    """(10,) sums over tokens, in the order of ``SUMS``; without gradient."""
    peaks: Tensor
    """(2,) largest ratio and largest absolute mismatch."""


SUMS = ("tokens", "ratio", "clipped", "entropy", "kl", "delta", "k3", "capped", "rho", "rho2")


def objective(
    logp_BT: Tensor,
    entropy_BT: Tensor,
    old_BT: Tensor,
    ref_BT: Tensor | None,
    batch: Batch,
    algorithm: Algorithm,
    totals: Totals,
    *,
    correction: Correction = "none",
    cap: float = 2.0,
) -> Part:
    """This micro-batch's part of the step's loss.

    A row's loss weight multiplies its loss and enters no denominator. The importance correction is
    on the surrogate alone.
    """
    mask_BT = batch.mask_BT
    advantage_B1 = batch.advantage_B[:, None]
    terms = surrogate(algorithm.surrogate, logp_BT, old_BT, advantage_B1, mask_BT)
    correct = importance(old_BT, batch.sampler_BT, mask_BT, correction, cap)
    loss_BT = terms.loss_BT * correct.weight_BT
    kl_BT = None
    if ref_BT is not None:
        kl_BT = divergence(logp_BT, ref_BT, algorithm.kl_estimator)
        if algorithm.kl_importance:
            kl_BT = kl_BT * token_ratio(logp_BT, old_BT)
        loss_BT = loss_BT + algorithm.kl_coefficient * kl_BT
    weights_BT = token_weights(
        mask_BT,
        algorithm.reduction,
        rows=totals.rows,
        tokens=totals.tokens,
        length=algorithm.length,
    )
    # Masked by selection: an infinity under a weight of 0 would be NaN.
    loss_BT = torch.where(mask_BT, loss_BT, 0.0)
    loss = (loss_BT * weights_BT * batch.weight_B[:, None]).sum()
    if algorithm.entropy_coefficient:
        bonus = (entropy_BT * mask_BT).sum() / totals.tokens
        loss = loss - algorithm.entropy_coefficient * bonus
    return Part(loss, *_statistics(terms, correct, entropy_BT, kl_BT, mask_BT))


def _statistics(
    terms: Terms, correct: Correct, entropy_BT: Tensor, kl_BT: Tensor | None, mask_BT: Tensor
) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        size_BT = correct.delta_BT.abs()
        rho_BT = correct.delta_BT.clamp(-20, 20).exp()
        k3_BT = rho_BT - 1 - correct.delta_BT
        ratio_BT = terms.ratio_BT.expand_as(size_BT)
        columns = [
            torch.ones_like(size_BT),
            ratio_BT,
            terms.clipped_BT,
            entropy_BT,
            torch.zeros_like(size_BT) if kl_BT is None else kl_BT,
            size_BT,
            k3_BT,
            correct.capped_BT,
            rho_BT,
            rho_BT**2,
        ]
        sums = torch.stack([torch.where(mask_BT, column, 0.0).sum() for column in columns])
        peaks = torch.stack([torch.where(mask_BT, x, 0.0).max() for x in (ratio_BT, size_BT)])
        return sums, peaks


def describe(sums: Tensor, peaks: Tensor) -> dict[str, float]:
    """Metrics from added-up sums and the largest peaks; none where no token was scored."""
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
