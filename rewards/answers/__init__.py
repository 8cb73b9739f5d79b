"""Answer checking: where a response states its answer, and whether it equals the gold answer."""

from rewards.answers.checker import Checker
from rewards.answers.choice import letter_of
from rewards.answers.extract import after_thinking, boxes, candidates, extract
from rewards.answers.normalise import plain
from rewards.answers.values import Value, exact

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
