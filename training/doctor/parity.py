"""Do sampler and learner give the same token the same log-probability?

Legend: N tokens.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from training.doctor.finding import Finding, judged
from training.doctor.rescore import Scored

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Parity:
    """How far two log-probabilities of the same tokens lie apart."""

    mean: float
    """Of the absolute differences (nats)."""
    largest: float
    k3: float
    """Estimate of KL(sampler || learner), never negative."""
    tokens: int

    def __str__(self) -> str:
        return (
            f"mean |Δ| {self.mean:.1e}, max {self.largest:.1e}, k3 {self.k3:.1e}, "
            f"{self.tokens} tokens"
        )


def parity(sampler_N: Floats, learner_N: Floats) -> Parity | None:
    """Compare where the sampler could tell; None where it nowhere could."""
    known_N = ~np.isnan(sampler_N)
    if not known_N.any():
        return None
    # Delta = log p_learner - log p_sampler, over tokens drawn from the sampler.
    delta_N = learner_N[known_N] - sampler_N[known_N]
    # k3 = E[exp(Delta) - 1 - Delta]   http://joschu.net/blog/kl-approx.html
    k3 = float(np.mean(np.expm1(np.minimum(delta_N, 50.0)) - delta_N))
    apart_N = np.abs(delta_N)
    return Parity(float(apart_N.mean()), float(apart_N.max()), k3, int(known_N.sum()))


def tolerance(dtype: torch.dtype) -> float:
    """Mean difference above which something is wrong."""
    return 1e-3 if dtype == torch.float32 else 5e-2


def check_parity(check: str, role: str, scored: Scored, limit: float, *, way_out: str) -> Finding:
    """Sampler against learner, the same weights."""
    found = parity(scored.sampler_N, scored.learner_N)
    if found is None:
        return Finding(
            check,
            role,
            "the sampler gives no log-probabilities",
            "not measured",
            "with --engine vllm, --rollout.top-p 1 --rollout.top-k 0 brings them back",
        )
    # Negated, so that NaN is wrong too.
    return judged(check, role, str(found), wrong=not found.mean <= limit, way_out=way_out)
