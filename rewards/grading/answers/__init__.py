"""Answer checking: where a response states its answer, and whether it equals the gold answer.

``checker.py`` calls the others:

- where the answer stands: ``extract`` (marks), ``bold``, ``unmarked``, ``choice``, ``confidence``;
- what a sentence states: ``statements``, ``sentences``, ``leads``, ``verbs``, ``question_units``;
- what is dropped before a comparison: ``normalise``, ``units``, ``worked``;
- how an answer is read: ``structure``, ``values``, ``grammar``, ``formula``, ``dates``;
- when two answers are equal: ``equality``, ``canonical``, ``restated``, ``tasks``;
- algebra in processes of its own: ``caps``, ``pool``, ``worker``.

``votes`` gives equal answers one form for majority votes.
"""

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
