"""Check that sampler and learner agree on log-probabilities, and that no filter biases sampling.

Legend: N tokens.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.doctor.rescore import TokenScores

Floats = npt.NDArray[np.float64]

_FEWEST_NATS2 = 20.0
"""Variance of log-probabilities below which z says nothing."""
_LIMIT = 4.0
"""Standard deviations."""


@dataclass(frozen=True)
class Parity:
    """The difference between two sets of log-probabilities of the same tokens."""

    mean: float
    """Mean absolute difference (nats)."""
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
    """Compare log-probabilities where the sampler's are known; None if none is."""
    known_N = ~np.isnan(sampler_N)
    if not known_N.any():
        return None
    # Delta = log p_learner - log p_sampler, over tokens drawn from the sampler.
    delta_N = learner_N[known_N] - sampler_N[known_N]
    # k3 = E[exp(Delta) - 1 - Delta]   http://joschu.net/blog/kl-approx.html
    k3 = float(np.mean(np.expm1(np.minimum(delta_N, 50.0)) - delta_N))
    apart_N = np.abs(delta_N)
    return Parity(float(apart_N.mean()), float(apart_N.max()), k3, int(known_N.sum()))


def tolerance(dtype: torch.dtype, *, int8: bool = False) -> float:
    """Largest acceptable mean difference (nats) for a number format; ``int8``: whether products are
    rounded to 8 bits, so that another order of a sum can change a code."""
    return 1e-3 if dtype == torch.float32 and not int8 else 5e-2


def check_parity(
    check: str, role: str, scored: TokenScores | None, limit: float, *, way_out: str
) -> Finding:
    """Compare sampler and learner, which should have the same weights. ``limit`` is the largest
    acceptable mean difference, in nats."""
    if scored is None:
        why = "nothing to compare: no tokens, or weights that only an engine holds"
        return Finding(check, role, why, "not measured")
    difference = parity(scored.sampler_N, scored.learner_N)
    if difference is None:
        return Finding(
            check,
            role,
            "the sampler gives no log-probabilities",
            "not measured",
            "with --engine vllm, --rollout.top-p 1 --rollout.top-k 0 brings them back",
        )
    # Negated, so that NaN is wrong too.
    return judge(check, role, str(difference), wrong=not difference.mean <= limit, way_out=way_out)


def surplus_z(logp_N: Floats, entropy_N: Floats, variance_N: Floats) -> float:
    """z of the sampled tokens' log-probabilities against their expectation.

    If tokens are drawn from p, E[log p + H] = 0 and Var[log p + H] = Var_p[log p] at each
    position given its context: z = sum(log p + H) / sqrt(sum Var_p[log p]). If sampling favours
    likely tokens (a filter, a lower temperature), z > 0; if it favours unlikely ones (a penalty,
    a higher temperature), z < 0.

    Args:
        logp_N: log-probabilities of the sampled tokens.
        entropy_N: entropy at each position (nats).
        variance_N: variance of log p at each position.
    """
    return float(np.sum(logp_N + entropy_N) / np.sqrt(np.sum(variance_N)))


def check_neutrality(role: str, scored: TokenScores, *, filtered: bool) -> Finding:
    """Check that tokens are as likely as draws from the learner's distribution. ``filtered`` says
    that top-p or top-k is on."""
    check = "neutral sampling"
    if filtered:
        return Finding(
            check,
            role,
            "a filter is on, which biases the importance ratios",
            "not measured",
            "--rollout.top-p 1 --rollout.top-k 0",
        )
    nats2 = float(np.sum(scored.variance_N))
    if nats2 < _FEWEST_NATS2:
        tokens = len(scored.learner_N)
        return Finding(check, role, f"{tokens} tokens are too few", "not measured")
    z = surplus_z(scored.learner_N, scored.entropy_N, scored.variance_N)
    return judge(
        check,
        role,
        f"z {z:+.1f} over {len(scored.learner_N)} tokens",
        wrong=not abs(z) <= _LIMIT,
        way_out="tokens are not drawn from the probabilities that are trained: look for a filter, "
        "a penalty or a temperature in the checkpoint's generation_config.json, and for another "
        "--agents.*.dtype on the sampler's side",
    )
