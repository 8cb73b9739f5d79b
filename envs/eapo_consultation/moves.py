"""What a turn of the policy amounts to."""

from dataclasses import dataclass
from typing import Literal

from rewards.consultation import ANSWER, read


@dataclass(frozen=True)
class Move:
    """One turn, read once."""

    kind: Literal["answer", "call", "ignored call"]
    text: str
    tokens: int
    payload: str = ""
    """What stands between the tags of a call."""
    thinking: bool = False
    """Whether the turn ends inside a thought."""


def move_of(text: str, tokens: int, *, thinking: bool, may_call: bool) -> Move:
    """Read a turn.

    Args:
        text: what the policy wrote.
        tokens: the same in its tokens.
        thinking: whether the turn begins inside a thought.
        may_call: whether calls are more than text now.

    The last complete block of calls counts, unless an answer follows it. Inside a thought it is
    text, on which sampling has stopped all the same.
    """
    if not may_call:
        return Move("answer", text, tokens)
    reading = read(text, opened=thinking)
    if reading.calls:
        start, end = reading.calls[-1]
        if ANSWER not in text[end:]:
            return Move("call", text, tokens, text[start:end], reading.thinking)
    unanswered = reading.thought_calls and ANSWER not in text[reading.thought_calls[-1] :]
    if reading.thinking and unanswered:
        return Move("ignored call", text, tokens, thinking=True)
    return Move("answer", text, tokens)
