"""Reading the ``<strategy>`` blocks of a trace, in one pass however broken they are."""

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"<(/?)strategy(?:\s[^<>]*)?>", re.IGNORECASE)
_ANSWER_NAME = r"final_answer|final-answer|answer|outcome|result|strategy_\w*?outcome"
ANSWER_TAG = re.compile(rf"<(/?)({_ANSWER_NAME})(?:\s[^<>]*)?>", re.IGNORECASE)
"""An opening or closing tag whose content is an answer; groups: slash, name."""


@dataclass(frozen=True)
class Strategy:
    """One block."""

    text: str
    """Everything between its tags."""
    outcome: str | None
    """The last answer that it states in a tag of its own."""


def strategies(text: str) -> list[Strategy]:
    """The closed strategy blocks of ``text`` in order; an opening tag starts anew, so a block that
    was never closed is dropped."""
    found: list[Strategy] = []
    start: int | None = None
    for tag in _BLOCK.finditer(text):
        if not tag[1]:
            start = tag.end()
        elif start is not None:
            inner = text[start : tag.start()]
            found.append(Strategy(inner, tagged_answer(inner)))
            start = None
    return found


def tagged_answer(text: str) -> str | None:
    """The content of the answer tag that is closed last, blanks trimmed."""
    span: tuple[int, int] | None = None
    opened: dict[str, int] = {}
    for tag in ANSWER_TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            opened[name] = tag.end()
        elif name in opened:
            span = (opened.pop(name), tag.start())
    return None if span is None else text[slice(*span)].strip()
