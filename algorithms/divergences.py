"""Estimators of KL(pi || pi_ref) from samples of pi (J. Schulman, "Approximating KL divergence").

Legend: B rows, T tokens; d = log pi - log pi_ref.
"""

from typing import Literal

from torch import Tensor

# exp(-d) - 1 + d: past 20 nats it is 5e8, which no coefficient makes useful.
_LIMIT = 20.0


def divergence(logp_BT: Tensor, ref_BT: Tensor, estimator: Literal["k1", "k2", "k3"]) -> Tensor:
    """Token-wise estimates, (B, T)."""
    d_BT = logp_BT - ref_BT
    match estimator:
        case "k1":  # unbiased, of either sign
            return d_BT
        case "k2":  # biased, and its gradient is that of the divergence
            return d_BT**2 / 2
        case "k3":  # unbiased, never negative
            return (-d_BT).clamp(max=_LIMIT).exp() - 1 + d_BT
