"""Is the sampler's distribution the learner's, and nothing between them?

Legend: N tokens.
"""

import numpy as np
import numpy.typing as npt

from training.doctor.finding import Finding, judged
from training.doctor.rescore import Scored

Floats = npt.NDArray[np.float64]

_FEWEST_NATS2 = 20.0
_LIMIT = 4.0


def surplus_z(logp_N: Floats, entropy_N: Floats, variance_N: Floats) -> float:
    """z of the sampled tokens' log-probabilities against their expectation.

    Where tokens are drawn from p, E[log p + H] = 0 and Var[log p + H] = Var_p[log p] at each
    position given its context: z = sum(log p + H) / sqrt(sum Var_p[log p]). Likelier tokens than
    p's own (a filter, a lower temperature) give z > 0, unlikelier ones (a penalty, a higher
    temperature) z < 0.
    """
    return float(np.sum(logp_N + entropy_N) / np.sqrt(np.sum(variance_N)))


def check_neutrality(role: str, scored: Scored, *, filtered: bool) -> Finding:
    """Whether tokens are as likely as tokens drawn from the learner's distribution are.

    Args:
        role: whose tokens.
        scored: by the learner, at the sampling temperature.
        filtered: whether top-p or top-k is on.
    """
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
        return Finding(check, role, f"{tokens} tokens tell too little", "not measured")
    z = surplus_z(scored.learner_N, scored.entropy_N, scored.variance_N)
    return judged(
        check,
        role,
        f"z {z:+.1f} over {len(scored.learner_N)} tokens",
        wrong=not abs(z) <= _LIMIT,
        way_out="tokens are not drawn from the probabilities that are trained: look for a filter, "
        "a penalty or a temperature in the checkpoint's generation_config.json, and for another "
        "--agents.*.dtype on the sampler's side",
    )
