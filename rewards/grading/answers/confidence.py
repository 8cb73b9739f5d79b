r"""Where a response states its confidence.

Rules of COREA (arXiv:2603.03752): the last ``\confidence{...}`` counts; a number from 0 to 1, or a
percentage. Linear in the length of the text, and raises on none.
"""

import math
import re

from coterie.rewards.grading.answers.extract import after_thinking, arguments

_MARK = re.compile(r"\\confidence\s{0,8}\{")
_LONGEST = 64
_NUMBER = re.compile(r"(\d{1,9}(?:\.\d{0,30})?|\.\d{1,30})\s?(\\?%)?", re.ASCII)


def stated(text: str) -> list[tuple[int, float | None]]:
    r"""(offset, value) of every ``\confidence{...}`` in order; None where the value is not valid.

    >>> stated(r"\confidence{80%} \confidence{high}")
    [(0, 0.8), (17, None)]
    """
    return [(start, read(text[a:b])) for start, a, b in arguments(text, _MARK)]


def read(content: str) -> float | None:
    """The confidence that stands between the braces; None unless it lies in [0, 1]. Nothing is ever
    clipped."""
    match = _NUMBER.fullmatch(content.strip(" $\t\n")) if len(content) <= _LONGEST else None
    if match is None:
        return None
    value = float(match[1])
    if match[2]:
        value /= 100
    return value if math.isfinite(value) and 0 <= value <= 1 else None


def without_confidences(text: str) -> str:
    r"""``text`` without every ``\confidence{...}``, which is not part of the answer on its line."""
    kept, position = "", 0
    for start, _, end in arguments(text, _MARK):
        kept += text[position:start]
        position = end + 1
    return kept + text[position:]


def parse_confidence(text: str) -> float | None:
    """The last confidence that is stated after the thinking; None where there is none, or the last
    one is not valid."""
    marks = stated(after_thinking(text))
    return marks[-1][1] if marks else None
