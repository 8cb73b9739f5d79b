"""Self-distillation: how a second context changes the advantage of each sampled token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.batching import ReaderLogprobs
from coterie.datatypes import Trajectory

# N sampled tokens of a row; K likeliest tokens; V vocabulary

_FAR = 80.0  # nats: exp of less is 0 in float32
_LEAST = 1e-6  # what rounding leaves of a probability
_AT_BOUND = 1 - 1e-5


@dataclass(frozen=True)
class TokenSignal:
    """What tokens have besides their row's advantage, from reading rows again and from rewards of
    turns: an entry for each row of an update, or none at all."""

    bonus: Sequence[Tensor] = ()
    """(T - 1,) what is added to the advantage of each token."""
    readers: Sequence[ReaderLogprobs | None] = ()
    """The reader's distribution of the next token at each of the row's (N,) sampled ones."""

    def plus(self, bonus: Sequence[Tensor]) -> "TokenSignal":
        """With ``bonus``, (T - 1,) of each row, added to the advantage of each token."""
        both = [a + b for a, b in zip(self.bonus, bonus, strict=True)] if self.bonus else bonus
        return replace(self, bonus=both)

    def covers(self, row: int) -> bool:
        """Whether it changes the loss of this row."""
        reader = self.readers[row] if self.readers else None
        return reader is not None or bool(self.bonus and self.bonus[row].any())


def on_sampled(rows: Sequence[Trajectory], logprobs: Sequence[Tensor]) -> list[Tensor]:
    """(N,) of each row's (T - 1,) log-probabilities."""
    return [
        logp_T[torch.from_numpy(row.mask[1:]).to(logp_T.device)]
        for row, logp_T in zip(rows, logprobs, strict=True)
    ]


def token_bonus(settings: Distillation, read_N: Tensor, own_N: Tensor) -> Tensor:
    """(N,) what is added to a row's advantage, token by token: ``beta clip(d_t, -bound, bound)``.

    Args:
        settings: beta and bound.
        read_N: the reader's log-probabilities after the other context.
        own_N: the row's own.
    """
    return settings.beta * _clipped(read_N, own_N, settings.bound)


def expected_difference(logp_NV: Tensor, reader: ReaderLogprobs) -> Tensor:
    """(N,) beta times the sum over the next token v of ``pi(v) clip(log pi_reader(v) - log pi(v),
    -c, c)``.

    The reader gives its likeliest tokens; all others count as one token. The gradient goes through
    pi(v) alone: it is the mean over next tokens of what :func:`token_bonus` does for the sampled
    one, with less variance (logit-level distillation, SDPO, arXiv:2601.20802).
    """
    own_NK = logp_NV.gather(-1, reader.ids_NK).clamp(min=-_FAR)
    gain_NK = own_NK.exp() * _clipped(reader.logp_NK, own_NK, reader.bound)
    gain_N = gain_NK.sum(-1)
    if own_NK.shape[-1] < logp_NV.shape[-1]:
        own_N, read_N = _rest(own_NK), _rest(reader.logp_NK)
        gain_N = gain_N + own_N * _clipped(read_N.log(), own_N.log(), reader.bound)
    return reader.beta_N * gain_N


def _clipped(read: Tensor, own: Tensor, bound: float) -> Tensor:
    return (read - own).detach().nan_to_num(0.0).clamp(-bound, bound)


def _rest(logp_NK: Tensor) -> Tensor:
    return (1 - logp_NK.exp().sum(-1)).clamp(min=_LEAST)


def describe_bonus(settings: Distillation, bonuses: Sequence[Tensor]) -> dict[str, float]:
    """Metrics over the sampled tokens of rows that were read again."""
    bonus_N = torch.cat(list(bonuses)).cpu()
    bounded_N = bonus_N.abs().numpy() >= _AT_BOUND * settings.beta * settings.bound
    return {
        "distillation/mean": float(bonus_N.mean()),
        "distillation/size": float(bonus_N.abs().mean()),
        "distillation/bounded": float(bounded_N.mean()),
        "distillation/beta": settings.beta,
    }


def by_trajectory(
    rows: Sequence[Trajectory], token_bonus: Mapping[int, Tensor]
) -> dict[int, npt.NDArray[np.float64]]:
    """``id(trajectory)`` -> (T,) the bonus of each of its tokens, 0 for those not learned.

    Args:
        rows: the trajectories of an update.
        token_bonus: place in ``rows`` -> (N,) the bonus of each sampled token that is learned.
    """
    by_id: dict[int, npt.NDArray[np.float64]] = {}
    for i, value_N in token_bonus.items():
        row = rows[i]
        value_T = np.zeros(len(row.tokens))
        value_T[row.learned_mask] = value_N.cpu().numpy()
        by_id[id(row)] = value_T
    return by_id
