"""Selective answering: risk among the most confident responses."""

# N responses, from the most to the least confident

import numpy as np
import numpy.typing as npt

from evaluation.metrics.present import Floats, as_floats


def risk_coverage(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Coverage 1/N .. 1 and the share of errors among that many most confident responses.

    Equal confidences are taken in random order: the risk is its expectation. Responses without a
    stated confidence come last; those that nobody judged are left out.
    """
    confidence_N, correct_N = as_floats(confidence_N), as_floats(correct_N)
    judged_N = ~np.isnan(correct_N)
    confidence_N, correct_N = confidence_N[judged_N], correct_N[judged_N]
    ranked_N = np.where(np.isnan(confidence_N), -np.inf, confidence_N)
    # A response counts with the mean error of those it is tied with.
    _, group_N = np.unique(-ranked_N, return_inverse=True)
    size_G = np.bincount(group_N)
    error_G = np.bincount(group_N, weights=1.0 - correct_N) / size_G
    taken_N = np.arange(1, len(correct_N) + 1)
    return taken_N / len(correct_N), np.cumsum(np.repeat(error_G, size_G)) / taken_N


def area_under_risk_coverage(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> float:
    """AURC: mean risk over all coverages (arXiv:1705.08500); NaN without responses."""
    _, risk_N = risk_coverage(confidence_N, correct_N)
    return float(risk_N.mean()) if len(risk_N) else float("nan")


def accuracy_at_coverage(
    confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike, coverage: float = 0.8
) -> float:
    """Accuracy of the most confident share ``coverage`` of responses, at least one of them."""
    coverage_N, risk_N = risk_coverage(confidence_N, correct_N)
    if not len(risk_N):
        return float("nan")
    taken = max(int(np.searchsorted(coverage_N, coverage + 1e-9, side="right")), 1)
    return float(1.0 - risk_N[taken - 1])
