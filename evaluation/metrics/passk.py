"""Pass@k: is one of k samples right."""

# Q questions, N samples of one role, K numbers of samples

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats


def unbiased(samples: npt.ArrayLike, right: npt.ArrayLike, k: int) -> Floats:
    """Probability that ``k`` of ``samples`` drawn without replacement hold one of the ``right``.

    Elementwise; NaN where there are fewer than ``k`` samples (arXiv:2107.03374, eq. 1).
    """
    if k < 1:
        raise ValueError(f"pass@{k}: k is at least 1")
    samples, right = as_floats(samples)[..., None], as_floats(right)[..., None]
    j = np.arange(1, int(samples.max(initial=0)) + 1)
    # 1 - C(n-c, k) / C(n, k) = 1 - prod_{j = n-c+1}^{n} (1 - k/j); the factor of j = k is 0
    drawn = (j > samples - right) & (j <= samples)
    passed = 1.0 - np.where(drawn, 1.0 - k / j, 1.0).prod(axis=-1)
    return np.where(samples[..., 0] >= k, passed, np.nan)


def pass_at_k(correct_QN: npt.ArrayLike, k: int) -> Floats:
    """(Q,) unbiased pass@k of each question."""
    correct_QN = as_floats(correct_QN)
    present_QN = ~np.isnan(correct_QN)
    return unbiased(present_QN.sum(axis=1), (correct_QN > 0).sum(axis=1), k)
