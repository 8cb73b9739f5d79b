"""Answer checking: where a response states its answer, and whether it equals the gold answer."""

from coterie.rewards.grading.answers.checker import Checker
from coterie.rewards.grading.answers.choice import letter_of
from coterie.rewards.grading.answers.extract import after_thinking, boxes, candidates, extract
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.values import Value, exact

__all__ = [
    "Checker",
    "Value",
    "after_thinking",
    "boxes",
    "candidates",
    "exact",
    "extract",
    "letter_of",
    "plain",
]
