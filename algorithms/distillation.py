"""Distillation: the log-probabilities of a reader change the advantages of sampled tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.batching import ReaderLogprobs
from coterie.datatypes import Trajectory

# N sampled tokens of a row; K likeliest tokens; V vocabulary

_FAR = 80.0  # nats: exp(-80) = 2e-35 is negligible
_LEAST = 1e-6  # smaller probabilities are rounding errors
_AT_BOUND = 1 - 1e-5


@dataclass(frozen=True)
class TokenSignal:
    """Additions to the advantages of tokens, from rereading and from turn rewards. Each sequence
    has an entry for every row of an update, or is empty."""

    bonus: Sequence[Tensor] = ()
    """(T - 1,) the addition to the advantage of each token."""
    readers: Sequence[ReaderLogprobs | None] = ()
    """The reader's distribution of the next token at each of the row's N sampled tokens."""

    def plus(self, bonus: Sequence[Tensor]) -> "TokenSignal":
        """Return this signal with ``bonus``, (T - 1,) for each row, added."""
        both = [a + b for a, b in zip(self.bonus, bonus, strict=True)] if self.bonus else bonus
        return replace(self, bonus=both)

    def covers(self, row: int) -> bool:
        """Whether the signal changes the loss of the row with index ``row``."""
        reader = self.readers[row] if self.readers else None
        return reader is not None or bool(self.bonus and self.bonus[row].any())


def on_sampled(rows: Sequence[Trajectory], logprobs: Sequence[Tensor]) -> list[Tensor]:
    """Select the (N,) log-probabilities of sampled tokens from each row's (T - 1,)."""
    return [
        logp_T[torch.from_numpy(row.mask[1:]).to(logp_T.device)]
        for row, logp_T in zip(rows, logprobs, strict=True)
    ]


def token_bonus(settings: Distillation, read_N: Tensor, own_N: Tensor) -> Tensor:
    """Return the bonus of each sampled token, ``beta clip(d_t, -bound, bound)``, (N,).

    Args:
        settings: beta and bound.
        read_N: the reader's log-probabilities after the other context.
        own_N: the policy's log-probabilities.
    """
    return settings.beta * _clipped_difference(read_N, own_N, settings.bound)


def expected_difference(logp_NV: Tensor, reader: ReaderLogprobs) -> Tensor:
    """Return beta times the sum over next tokens v of
    ``pi(v) clip(log pi_reader(v) - log pi(v), -c, c)``, (N,).

    The reader names its likeliest tokens; all others count as one class. The gradient flows through
    pi(v) alone. It is the expectation of :func:`token_bonus` over the next token, with less
    variance (logit-level distillation, SDPO, arXiv:2601.20802).
    """
    own_NK = logp_NV.gather(-1, reader.ids_NK).clamp(min=-_FAR)
    gain_NK = own_NK.exp() * _clipped_difference(reader.logp_NK, own_NK, reader.bound)
    gain_N = gain_NK.sum(-1)
    if own_NK.shape[-1] < logp_NV.shape[-1]:
        own_N, read_N = _remaining_mass(own_NK), _remaining_mass(reader.logp_NK)
        gain_N = gain_N + own_N * _clipped_difference(read_N.log(), own_N.log(), reader.bound)
    return reader.beta_N * gain_N


def _clipped_difference(read: Tensor, own: Tensor, bound: float) -> Tensor:
    # A token that both find impossible gives inf - inf.
    return (read - own).detach().nan_to_num(0.0).clamp(-bound, bound)


def _remaining_mass(logp_NK: Tensor) -> Tensor:
    return (1 - logp_NK.exp().sum(-1)).clamp(min=_LEAST)


def describe_bonus(settings: Distillation, bonuses: Sequence[Tensor]) -> dict[str, float]:
    """Return metrics over the sampled tokens of reread rows."""
    bonus_N = torch.cat(list(bonuses)).cpu()
    bounded_N = bonus_N.abs().numpy() >= _AT_BOUND * settings.beta * settings.bound
    return {
        "distillation/mean": float(bonus_N.mean()),
        "distillation/size": float(bonus_N.abs().mean()),
        "distillation/bounded": float(bounded_N.mean()),
        "distillation/beta": settings.beta,
    }


def on_all_tokens(row: Trajectory, bonus_N: Tensor) -> npt.NDArray[np.float64]:
    """Return the bonus of each token (T,), 0 for tokens that are not learned.

    Args:
        row: the trajectory.
        bonus_N: the bonus of each learned token.
    """
    bonus_T = np.zeros(len(row.tokens))
    bonus_T[row.learned_mask] = bonus_N.cpu().numpy()
    return bonus_T
