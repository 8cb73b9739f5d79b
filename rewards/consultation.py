"""What a conversation with experts earns (EAPO, arXiv:2509.23730, section 2.4)."""

from typing import Literal

FORMAT_REWARD = 0.1
"""Paid for a wrong answer in the right format."""

AnswerRule = Literal["em_math", "f1_literal", "f1_or_format"]


def answer_reward(rule: AnswerRule, *, correct: bool, f1: float, formatted: bool) -> float:
    """Value of the final answer, in [0, 1].

    Args:
        rule: ``f1_literal`` is the paper's: F1 where it is above 0, so that one word of forty
            earns less than a wrong answer in the right format. ``f1_or_format`` pays the larger of
            the two. ``em_math`` pays for an equal value instead of shared words.
        correct: whether the answer equals the gold answer in value.
        f1: see :func:`rewards.squad_f1.squad_f1`.
        formatted: see :func:`rewards.consultation_format.well_formed`.
    """
    floor = FORMAT_REWARD if formatted else 0.0
    match rule:
        case "em_math":
            return 1.0 if correct else floor
        case "f1_literal":
            return f1 if f1 > 0 else floor
        case "f1_or_format":
            return max(f1, floor)


def consult_penalty(calls: int, weight: float) -> float:
    """``-weight`` for each call. The paper announces a penalty and gives no term; 0 is its rule."""
    return -weight * calls if calls and weight else 0.0
