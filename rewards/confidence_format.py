r"""Thirds for one boxed answer, a valid confidence after it, and the question's language.

COREA (arXiv:2603.03752) asks for consistent language, answer and confidence, normalised to [0, 1],
and gives no formula.
"""

import re

from rewards.answers.confidence import parse_confidence, stated
from rewards.answers.extract import after_thinking, boxes

# Han, kana and hangul, with their punctuation.
_CJK = re.compile(
    "[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]"
)
_FOREIGN_SHARE = 0.01


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
    """The share of :func:`format_parts` that hold: 0, 1/3, 2/3 or 1."""
    return sum(format_parts(response, question)) / 3
