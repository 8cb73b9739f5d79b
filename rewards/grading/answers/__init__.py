"""Answer checking: where a response states its answer, and whether it equals the gold answer."""

from rewards.grading.answers.checker import Checker
from rewards.grading.answers.choice import letter_of
from rewards.grading.answers.extract import after_thinking, boxes, candidates, extract
from rewards.grading.answers.normalise import plain
from rewards.grading.answers.values import Value, exact

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
