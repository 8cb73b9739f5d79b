"""What a context that its author did not have says of each token of a row."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import Trajectory

# N sampled tokens of a row

_LIMIT = 20.0  # nats: beyond, an exponential says nothing more
_AT_BOUND = 1 - 1e-5


def on_sampled(rows: Sequence[Trajectory], logprobs: Sequence[Tensor]) -> list[Tensor]:
    """(N,) of each row's (T - 1,) log-probabilities."""
    return [
        logp_T[torch.from_numpy(row.mask[1:]).to(logp_T.device)]
        for row, logp_T in zip(rows, logprobs, strict=True)
    ]


def token_bonus(how: Distillation, advantage: float, read_N: Tensor, against_N: Tensor) -> Tensor:
    """(N,) what is added to a row's advantage, token by token.

    Args:
        how: beta, direction and bound.
        advantage: the row's.
        read_N: the reader's log-probabilities behind the other context.
        against_N: what they are compared with: the row's own, or the reader's behind a contrast.
    """
    difference_N = (read_N - against_N).nan_to_num(0.0)
    if how.direction == "hint":  # beta clip(d_t, -c, c)
        return how.beta * difference_N.clamp(-how.bound, how.bound)
    # beta A (clip(exp(sign(A) d_t), 1 - c, 1 + c) - 1)      RLSD, arXiv:2604.03128
    towards_N = float(np.sign(advantage)) * difference_N
    weight_N = towards_N.clamp(-_LIMIT, _LIMIT).exp().clamp(1 - how.bound, 1 + how.bound)
    return how.beta * advantage * (weight_N - 1)


def describe_bonus(
    how: Distillation, told: Sequence[Tensor], advantages: npt.NDArray[np.float64]
) -> dict[str, float]:
    """Metrics over the sampled tokens of rows that were read again."""
    value_N = torch.cat(list(told)).cpu()
    scale = np.abs(advantages) if how.direction == "reward" else np.ones(len(told))
    most_N = how.beta * how.bound * np.repeat(scale, [len(one) for one in told])
    bounded_N = (value_N.abs().numpy() >= _AT_BOUND * most_N) & (most_N > 0)
    return {
        "distillation/mean": float(value_N.mean()),
        "distillation/size": float(value_N.abs().mean()),
        "distillation/bounded": float(bounded_N.mean()),
        "distillation/beta": how.beta,
    }


def by_trajectory(
    given: Sequence[Trajectory], told: Mapping[int, Tensor]
) -> dict[int, npt.NDArray[np.float64]]:
    """``id(trajectory)`` -> (T,) what each of its tokens was told; for those of ``told``, by place.

    The first token of a context is never scored.
    """
    found: dict[int, npt.NDArray[np.float64]] = {}
    for i, value_N in told.items():
        row = given[i]
        value_T = np.zeros(len(row.tokens))
        value_T[np.flatnonzero(row.mask)[-len(value_N) :]] = value_N.cpu().numpy()
        found[id(row)] = value_T
    return found
