"""From logits and one uniform per row to one token per row."""

from dataclasses import dataclass

import torch
from torch import Tensor

# B rows, V vocabulary


@dataclass(frozen=True)
class Rules:
    """How each row of a batch is sampled; None where no row departs from the neutral value."""

    temperature_B: Tensor | None
    """Positive; 1 for greedy rows, whose log-probabilities are those at temperature 1."""
    greedy_B: Tensor | None
    filtered_B: Tensor | None
    """Which rows have a top-k or top-p filter."""
    top_k_B: Tensor | None
    """V where the row has no such filter."""
    top_p_B: Tensor | None

    def select(self, index_N: Tensor) -> "Rules":
        """The rules of the rows in ``index_N``."""

        def pick(x: Tensor | None) -> Tensor | None:
            return None if x is None else x[index_N]

        return Rules(
            pick(self.temperature_B),
            pick(self.greedy_B),
            pick(self.filtered_B),
            pick(self.top_k_B),
            pick(self.top_p_B),
        )


def choose(logits_BV: Tensor, u_B: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """(B,) token ids and (B,) their log-probabilities after temperature, before the filters.

    Inverse-CDF sampling: the token in whose slice of [0, 1) ``u`` lies. Raises
    :class:`FloatingPointError` where a row's logits are not finite.
    """
    logits_BV = logits_BV.float()
    if rules.temperature_B is not None:
        logits_BV = logits_BV / rules.temperature_B[:, None]
    p_BV = torch.softmax(logits_BV, -1)
    tokens_B = invert(p_BV, u_B)
    if rules.filtered_B is not None and rules.top_k_B is not None and rules.top_p_B is not None:
        rows_N = rules.filtered_B.nonzero()[:, 0]
        tokens_B[rows_N] = _filtered(
            p_BV[rows_N], u_B[rows_N], rules.top_k_B[rows_N], rules.top_p_B[rows_N]
        )
    if rules.greedy_B is not None:
        tokens_B = torch.where(rules.greedy_B, logits_BV.argmax(-1), tokens_B)
    logp_B = p_BV.gather(1, tokens_B[:, None])[:, 0].log()
    return tokens_B, logp_B


def invert(weight_BV: Tensor, u_B: Tensor) -> Tensor:
    """(B,) the first index at which the running sum of ``weight_BV`` exceeds u times its total;
    an index without weight is never chosen. Raises :class:`FloatingPointError`."""
    cdf_BV = weight_BV.cumsum(-1)
    total_B = cdf_BV[:, -1]
    if not bool(torch.isfinite(total_B).all()):
        raise FloatingPointError("the model's logits are not finite: its weights have diverged")
    # u * total may round up to the total, beyond the last index with weight.
    target_B = torch.minimum(u_B * total_B, torch.nextafter(total_B, torch.zeros_like(total_B)))
    return torch.searchsorted(cdf_BV, target_B[:, None], right=True)[:, 0]


def _filtered(p_BV: Tensor, u_B: Tensor, top_k_B: Tensor, top_p_B: Tensor) -> Tensor:
    """Sample among the top-k tokens, and of these among the smallest set that holds top-p of
    their probability."""
    sorted_BV, order_BV = torch.sort(p_BV, dim=-1, descending=True, stable=True)
    rank_V = torch.arange(p_BV.shape[1], device=p_BV.device)
    sorted_BV = sorted_BV * (rank_V < top_k_B[:, None])
    before_BV = sorted_BV.cumsum(-1) - sorted_BV
    inside_BV = before_BV < top_p_B[:, None] * sorted_BV.sum(-1, keepdim=True)
    inside_BV[:, 0] = True
    place_B = invert(sorted_BV * inside_BV, u_B)
    return order_BV.gather(1, place_B[:, None])[:, 0]
