"""What a context that its author did not have says of each token of a row."""

from collections.abc import Sequence

import torch
from torch import Tensor

from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import Trajectory


def token_bonus(
    how: Distillation, row: Trajectory, own_T: Tensor, other: Trajectory, read_T: Tensor
) -> Tensor:
    """(T - 1,) ``beta clip(read - own, -bound, bound)`` on the row's sampled tokens, else 0.

    Args:
        how: beta and the bound.
        row: as its author saw it.
        own_T: (T - 1,) its log-probabilities.
        other: the same sampled tokens behind the other context.
        read_T: the reader's log-probabilities of that.
    """
    mask_T, other_T = (torch.from_numpy(t.mask[1:]).to(own_T.device) for t in (row, other))
    bonus_T = torch.zeros_like(own_T)
    difference_N = (read_T[other_T] - own_T[mask_T]).clamp(-how.bound, how.bound)
    bonus_T[mask_T] = how.beta * difference_N.nan_to_num(0.0)
    return bonus_T


def describe_bonus(
    how: Distillation, rows: Sequence[Trajectory], told: Sequence[Tensor]
) -> dict[str, float]:
    """Metrics over the sampled tokens of rows that were read again."""
    values = [bonus_T.cpu()[torch.from_numpy(row.mask[1:])] for row, bonus_T in zip(rows, told)]
    value_N = torch.cat(values)
    return {
        "distillation/mean": float(value_N.mean()),
        "distillation/size": float(value_N.abs().mean()),
        "distillation/bounded": float((value_N.abs() >= how.beta * how.bound).float().mean()),
    }
