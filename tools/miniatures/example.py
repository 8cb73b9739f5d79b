"""What a warm start is shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """One supervised pair of texts; the answer is followed by an end-of-sequence token."""

    prompt: str
    answer: str
