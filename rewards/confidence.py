"""Rewards for a stated confidence: for its calibration, and for its format.

COREA (arXiv:2603.03752, section 3.2). With the group's accuracy as the target, L2 and KL are best
at its mean; L1 is best at its **median**, a multiple of 1/N, so that it rounds to 0 and 1 at the
ends. With the trace's own correctness as the target, L2 (Brier) and KL (log score) are proper, and
L1 is not: it is best at 0 or 1.
"""

import re
from typing import Literal

import numpy as np
import numpy.typing as npt

from coterie.rewards.grading.answers.confidence import parse_confidence, stated
from coterie.rewards.grading.answers.extract import after_thinking, boxes

# N traces of one question and role

ConfidenceDistance = Literal["l1", "l2", "kl"]
Target = Literal["group", "leave-one-out", "shrunk", "sample", "mix"]
ThresholdSource = Literal["accuracy", "cost", "large-pass@1", "fixed"]
"""How the threshold of confidence is chosen below which a model defers."""

Floats = npt.NDArray[np.float64]

EPSILON = 1e-3
"""Smallest probability inside a logarithm; it also sets the scale of KL."""
WORST = -1.0
"""Reward without a valid confidence: silence never beats a bad number."""

# Han, kana and hangul, with their punctuation.
_CJK = re.compile(
    "[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]"
)
_FOREIGN_SHARE = 0.01


def target(correct_N: npt.ArrayLike, kind: Target) -> Floats:
    """(N,) the probability of being right that each trace should have stated.

    group          the share of right traces (eq. 6)
    leave-one-out  the same over the others; a single trace has its own correctness
    shrunk         (right + 1) / (N + 2), the mean under a uniform prior
    sample         the trace's own correctness
    mix            half group, half sample
    """
    right_N = np.asarray(correct_N, dtype=np.float64)
    count = len(right_N)
    if not count:
        return right_N
    group = right_N.mean()
    match kind:
        case "group":
            return np.full(count, group)
        case "leave-one-out":
            return (right_N.sum() - right_N) / (count - 1) if count > 1 else right_N
        case "shrunk":
            return np.full(count, (right_N.sum() + 1) / (count + 2))
        case "sample":
            return right_N
        case "mix":
            return (group + right_N) / 2


def confidence_reward(
    stated_N: npt.ArrayLike,
    target_N: npt.ArrayLike,
    measure: ConfidenceDistance,
    epsilon: float = EPSILON,
) -> Floats:
    """(N,) rewards in [-1, 0], 0 best; a NaN in ``stated_N`` (no valid confidence) earns -1.

    l1  ``-|p - y|`` (eq. 2)
    l2  ``-(p - y)^2`` (eq. 3)
    kl  ``-(p ln y + (1 - p) ln (1 - y)) / ln epsilon``: the cross entropy of eq. 4 over its largest
        value. Eq. 5 is printed without the leading minus, which would pay the worst confidence
        most.
    """
    y_N, p_N = np.asarray(stated_N, np.float64), np.asarray(target_N, np.float64)
    match measure:
        case "l1":
            reward_N = -np.abs(p_N - y_N)
        case "l2":
            reward_N = -((p_N - y_N) ** 2)
        case "kl":
            for_right_N = np.log(np.maximum(y_N, epsilon))
            for_wrong_N = np.log(np.maximum(1.0 - y_N, epsilon))
            reward_N = -(p_N * for_right_N + (1.0 - p_N) * for_wrong_N) / np.log(epsilon)
    return np.where(np.isnan(y_N), WORST, reward_N)


def format_parts(response: str, question: str) -> tuple[bool, bool, bool]:
    """(one answer, a confidence after it, one language) of what follows the thinking.

    The answer is exactly one box that is not empty. The language is checked where the question has
    no character of Chinese, Japanese or Korean: then fewer than 1 % of the response's may be one.
    """
    text = after_thinking(response)
    filled = [end for _, start, end in boxes(text) if text[start:end].strip()]
    answered = len(filled) == 1
    marks = stated(text)
    confident = parse_confidence(text) is not None and bool(filled) and marks[-1][0] > filled[-1]
    foreign = 0 if response.isascii() else len(_CJK.findall(response))
    return (
        answered,
        confident,
        _CJK.search(question) is not None or foreign < max(1, _FOREIGN_SHARE * len(response)),
    )


def confidence_format(response: str, question: str) -> float:
    """The share of :func:`format_parts` that hold: 0, 1/3, 2/3 or 1.

    COREA asks for consistent language, answer and confidence, normalised to [0, 1], and gives no
    formula.
    """
    return sum(format_parts(response, question)) / 3
