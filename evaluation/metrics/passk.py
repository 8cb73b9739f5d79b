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
    """(Q,) unbiased pass@k of each question; of scores that are not all 0 or 1 the expected
    highest of k samples drawn without replacement, which it is of zeros and ones too."""
    correct_QN = as_floats(correct_QN)
    samples_Q = (~np.isnan(correct_QN)).sum(axis=1)
    if is_binary(correct_QN):
        return unbiased(samples_Q, (correct_QN > 0).sum(axis=1), k)
    # sum_i x_(i) (P(one of the i highest is drawn) - P(one of the i - 1 highest is drawn))
    best_QN = -np.sort(-correct_QN, axis=1)
    reached_QN = np.stack([unbiased(samples_Q, i + 1, k) for i in range(best_QN.shape[1])], axis=1)
    return (np.nan_to_num(best_QN) * np.diff(reached_QN, axis=1, prepend=0.0)).sum(axis=1)


def is_binary(score: npt.ArrayLike) -> bool:
    """Whether nothing but 0 and 1 was scored."""
    score = as_floats(score)
    return bool(np.isin(score[~np.isnan(score)], (0.0, 1.0)).all())


def pass_at_every_k(correct_QN: npt.ArrayLike) -> Floats:
    """(Q, K) unbiased pass@k for k = 1 .. N."""
    correct_QN = as_floats(correct_QN)
    columns = [pass_at_k(correct_QN, k) for k in range(1, correct_QN.shape[1] + 1)]
    return np.stack(columns, axis=1)


def any_of_first(correct_QN: npt.ArrayLike, k: int) -> Floats:
    """(Q,) 1 where one of the first ``k`` existing samples is right, else 0 (the evaluator of CoRe,
    arXiv:2601.21600). Equals :func:`pass_at_k` where there are exactly ``k`` samples."""
    if k < 1:
        raise ValueError(f"pass@{k}: k is at least 1")
    correct_QN = as_floats(correct_QN)
    rank_QN = np.cumsum(~np.isnan(correct_QN), axis=1)
    passed_Q = ((correct_QN > 0) & (rank_QN <= k)).any(axis=1)
    return np.where((~np.isnan(correct_QN)).sum(axis=1) >= k, passed_Q, np.nan)
