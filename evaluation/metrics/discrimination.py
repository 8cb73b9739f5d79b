"""Discrimination: whether right responses have more confidence than wrong ones, and the risk of
answering only the most confident ones."""

# N responses, Q questions, S samples of a question, V distinct confidences; NaN: missing

import numpy as np
import numpy.typing as npt

from coterie.evaluation.metrics.means import Floats, as_floats, ratio


def auroc(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> float:
    """Mann-Whitney: ``(#{p+ > p-} + #{p+ = p-} / 2) / (n+ n-)``.

    NaN with one class only; such values stay out of means. Responses without a stated confidence
    are left out.
    """
    won, pairs = _wins(as_floats(confidence_N), as_floats(correct_N))
    return won / pairs if pairs else float("nan")


def within_question_auroc(confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike) -> float:
    """AUROC over pairs of samples of the same question, so that telling easy questions from hard
    ones earns nothing."""
    rows = zip(as_floats(confidence_QS), as_floats(correct_QS), strict=True)
    wins = [_wins(confidence, correct) for confidence, correct in rows]
    return float(ratio(sum(won for won, _ in wins), sum(pairs for _, pairs in wins)))


def _wins(confidence_N: Floats, correct_N: Floats) -> tuple[float, int]:
    """(pairs in which the right response has more confidence, ties count half; all pairs)."""
    known_N = ~np.isnan(confidence_N) & ~np.isnan(correct_N)
    confidence_N, right_N = confidence_N[known_N], correct_N[known_N] > 0
    right, wrong = confidence_N[right_N], np.sort(confidence_N[~right_N])
    below = np.searchsorted(wrong, right, side="left")
    not_above = np.searchsorted(wrong, right, side="right")
    return float((below + not_above).sum() / 2), len(right) * len(wrong)


def discrimination_columns(confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike) -> Floats:
    """(Q, 2 V): counts of wrong, then of right responses for each confidence, in rising order."""
    confidence_QS, correct_QS = as_floats(confidence_QS), as_floats(correct_QS)
    stated_QS = ~np.isnan(correct_QS - confidence_QS)
    row_N = np.nonzero(stated_QS)[0]
    values_V, place_N = np.unique(confidence_QS[stated_QS], return_inverse=True)
    right_N = correct_QS[stated_QS] > 0
    columns_QM = np.zeros((len(stated_QS), 2 * len(values_V)))
    np.add.at(columns_QM, (row_N, place_N + len(values_V) * right_N), 1.0)
    return columns_QM


def discrimination(means: npt.ArrayLike) -> Floats:
    """AUROC from means of :func:`discrimination_columns`, (..., M) -> (...)."""
    means = as_floats(means)
    wrong, right = np.split(means, 2, axis=-1)
    below = np.cumsum(wrong, axis=-1) - wrong / 2
    return ratio((right * below).sum(axis=-1), right.sum(axis=-1) * wrong.sum(axis=-1))


def risk_coverage(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Coverage 1/N .. 1 and the share of errors among the most confident responses.

    Equal confidences are taken in random order, of which the risk is the expectation. Responses
    without a confidence come last; those without a verdict are left out.
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
