"""Discrimination: whether right responses have more confidence than wrong ones."""

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
