"""The choice of each row's next token, from its logits and its random stream."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.datatypes import Sampling

# B rows, V vocabulary, T numbers of a stream

_WIDE, _BLOCK = 1 << 13, 1 << 8
"""(size from which vocabularies are summed in blocks, size of a block)"""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Rules:
    """Sampling parameters of each row of a batch; None if all rows have the neutral value."""

    temperature_B: Tensor | None
    """Positive; 1 for greedy rows, whose log-probabilities are those at temperature 1."""
    greedy_B: Tensor | None
    filtered_B: Tensor | None
    """Whether a row has a top-k or top-p filter."""
    top_k_B: Tensor | None
    """V for rows without this filter."""
    top_p_B: Tensor | None

    @staticmethod
    def of(samplings: Sequence[Sampling], vocab_size: int, device: torch.device) -> "Rules":
        """Return the rules of rows with these settings."""
        temperature = torch.tensor([s.temperature for s in samplings], device=device)
        greedy = temperature == 0
        top_k = torch.tensor([s.top_k or vocab_size for s in samplings], device=device)
        top_p = torch.tensor([s.top_p for s in samplings], device=device)
        filtered = ((top_k < vocab_size) | (top_p < 1)) & ~greedy
        temperature = torch.where(greedy, 1.0, temperature)
        any_filtered = bool(filtered.any())
        return Rules(
            temperature_B=temperature if bool((temperature != 1).any()) else None,
            greedy_B=greedy if bool(greedy.any()) else None,
            filtered_B=filtered if any_filtered else None,
            top_k_B=top_k if any_filtered else None,
            top_p_B=top_p if any_filtered else None,
        )

    def select(self, index_N: Tensor) -> "Rules":
        """Return the rules of the rows in ``index_N``."""
        return Rules(*(None if x is None else x[index_N] for x in vars(self).values()))


def uniforms(seeds_B: npt.NDArray[np.uint64], start: int, count: int) -> npt.NDArray[np.float32]:
    """Return uniforms in [0, 1), (B, count): numbers start, start + 1, ... of each row's stream.

    This is SplitMix64 (Steele, Lea & Flood 2014) with an additional mix of the seed, so that
    streams of neighbouring seeds do not overlap. The numbers are multiples of 2^-24, hence exact in
    float32 and never 1.
    """
    steps_T = np.arange(start + 1, start + count + 1, dtype=np.uint64) * _GOLDEN
    bits_BT = _mix(_mix(seeds_B)[:, None] + steps_T[None, :])
    return (bits_BT >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def choose(logits_BV: Tensor, u_B: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """Return token ids (B,) and their log-probabilities (B,) after temperature, before the filters.

    This is inverse-CDF sampling: a token is chosen if u lies in its slice of [0, 1).

    Args:
        logits_BV: (B, V)
        u_B: (B,) in [0, 1).
        rules: the rules of the rows.

    Raises:
        FloatingPointError: a row's logits are not finite.
    """
    logits_BV = logits_BV.float()
    if rules.temperature_B is not None:
        logits_BV = logits_BV / rules.temperature_B[:, None]
    p_BV = torch.softmax(logits_BV, -1)
    tokens_B = invert(p_BV, u_B)
    if rules.filtered_B is not None and rules.top_k_B is not None and rules.top_p_B is not None:
        rows_N = rules.filtered_B.nonzero()[:, 0]
        tokens_B[rows_N] = _choose_filtered(
            p_BV[rows_N], u_B[rows_N], rules.top_k_B[rows_N], rules.top_p_B[rows_N]
        )
    if rules.greedy_B is not None:
        tokens_B = torch.where(rules.greedy_B, logits_BV.argmax(-1), tokens_B)
    logp_B = p_BV.gather(1, tokens_B[:, None])[:, 0].log()
    return tokens_B, logp_B


def invert(weight_BV: Tensor, u_B: Tensor) -> Tensor:
    """Return the first index at which the running sum of a row exceeds u times its total, (B,).
    Indices with weight 0 are never chosen.

    Args:
        weight_BV: (B, V), at least 0.
        u_B: (B,) in [0, 1).

    Raises:
        FloatingPointError: a weight is not finite.
    """
    if weight_BV.shape[1] < _WIDE:
        cdf_BV = _running_sum(weight_BV)
        return _first_above(cdf_BV, u_B * cdf_BV[:, -1])
    # A running sum over a large vocabulary costs as much as its logits. Sum over blocks first, and
    # then within the block of the index.
    whole = weight_BV.shape[1] // _BLOCK * _BLOCK
    sum_BK = weight_BV[:, :whole].unflatten(1, (-1, _BLOCK)).sum(-1)
    if whole < weight_BV.shape[1]:
        sum_BK = torch.cat([sum_BK, weight_BV[:, whole:].sum(-1, keepdim=True)], 1)
    cdf_BK = _running_sum(sum_BK)
    target_B = u_B * cdf_BK[:, -1]
    block_B1 = _first_above(cdf_BK, target_B)[:, None]
    before_B = torch.nn.functional.pad(cdf_BK, (1, 0)).gather(1, block_B1)[:, 0]
    index_BN = block_B1 * _BLOCK + torch.arange(_BLOCK, device=weight_BV.device)
    inside_BN = index_BN < weight_BV.shape[1]
    inner_BN = weight_BV.gather(1, index_BN.clamp(max=weight_BV.shape[1] - 1)) * inside_BN
    inner_BN = _running_sum(inner_BN)
    return block_B1[:, 0] * _BLOCK + _first_above(inner_BN, target_B - before_B)


def _running_sum(weight_BV: Tensor) -> Tensor:
    cdf_BV = weight_BV.cumsum(-1)
    if not bool(torch.isfinite(cdf_BV[:, -1]).all()):
        raise FloatingPointError("the model's logits are not finite: its weights have diverged")
    return cdf_BV


def _first_above(cdf_BV: Tensor, target_B: Tensor) -> Tensor:
    """The first index whose running sum exceeds the target, (B,); at most the last with weight."""
    total_B = cdf_BV[:, -1]
    # Rounding can raise a target to the total, which no index exceeds.
    target_B = torch.minimum(target_B, torch.nextafter(total_B, torch.zeros_like(total_B)))
    return torch.searchsorted(cdf_BV, target_B[:, None], right=True)[:, 0]


def _choose_filtered(p_BV: Tensor, u_B: Tensor, top_k_B: Tensor, top_p_B: Tensor) -> Tensor:
    """Sample from the smallest set of the top-k tokens with at least top-p of their probability."""
    sorted_BV, order_BV = torch.sort(p_BV, dim=-1, descending=True, stable=True)
    rank_V = torch.arange(p_BV.shape[1], device=p_BV.device)
    sorted_BV = sorted_BV * (rank_V < top_k_B[:, None])
    before_BV = sorted_BV.cumsum(-1) - sorted_BV
    inside_BV = before_BV < top_p_B[:, None] * sorted_BV.sum(-1, keepdim=True)
    inside_BV[:, 0] = True
    rank_B = invert(sorted_BV * inside_BV, u_B)
    return order_BV.gather(1, rank_B[:, None])[:, 0]


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
