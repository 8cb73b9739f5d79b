"""Are right responses stated with more confidence than wrong ones."""

# N responses, Q questions, S samples of a question; NaN: missing

import numpy as np
import numpy.typing as npt

from evaluation.metrics.present import Floats, as_floats, ratio


def auroc(confidence_N: npt.ArrayLike, correct_N: npt.ArrayLike) -> float:
    """Mann-Whitney: ``(#{p+ > p-} + #{p+ = p-} / 2) / (n+ n-)``.

    NaN with one class only; such values stay out of means. Responses without a stated confidence
    are left out.
    """
    won, pairs = _wins(as_floats(confidence_N), as_floats(correct_N))
    return won / pairs if pairs else float("nan")


def question_auroc(confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike) -> Floats:
    """(Q,) AUROC of each question's own samples, NaN where all are right or all wrong."""
    return ratio(*_question_wins(confidence_QS, correct_QS))


def within_question_auroc(confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike) -> float:
    """AUROC over pairs of samples of the same question: telling one's right answers from one's
    wrong ones, with nothing earned by telling easy questions from hard ones."""
    won_Q, pairs_Q = _question_wins(confidence_QS, correct_QS)
    return float(ratio(won_Q.sum(), pairs_Q.sum()))


def _question_wins(
    confidence_QS: npt.ArrayLike, correct_QS: npt.ArrayLike
) -> tuple[Floats, Floats]:
    rows = zip(as_floats(confidence_QS), as_floats(correct_QS), strict=True)
    table = np.array([_wins(confidence, correct) for confidence, correct in rows], dtype=float)
    table = table.reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _wins(confidence_N: Floats, correct_N: Floats) -> tuple[float, int]:
    """Pairs (right, wrong) in which the right one is more confident, ties half; and all pairs."""
    known_N = ~np.isnan(confidence_N) & ~np.isnan(correct_N)
    confidence_N, right_N = confidence_N[known_N], correct_N[known_N] > 0
    right, wrong = confidence_N[right_N], np.sort(confidence_N[~right_N])
    below = np.searchsorted(wrong, right, side="left")
    not_above = np.searchsorted(wrong, right, side="right")
    return float((below + not_above).sum() / 2), len(right) * len(wrong)
