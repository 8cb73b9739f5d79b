"""Thoughts in the texts of models: their marks, and the reply that follows.

``<think>`` is the usual mark. Other families of models use ``[THINK]``, ``<seed:think>``,
``<|begin_of_thought|>`` or the channels of gpt-oss. If a chat template opens the thought, its mark
is in the prompt, where :func:`opened_by` finds it.
"""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coterie.datatypes.policy import TokenCodec

_NAME = r"(?:\w{1,16}:)?(?:think|thinking|thoughts?)"
_TAG = r"(?:(?!end_|no_)\w{1,16}[:_])?(?:think|thinking|thoughts?)(?:_fast(?:er)?)?"


def _mark(angle: str, word: str) -> str:
    """The pattern of ``<`` followed by ``angle``, or of ``word`` in brackets."""
    # Marks in backticks are quotations. A pattern that begins with a set of three characters lets
    # the search skip most of a long text.
    rest = rf"(?:(?<=<)(?:{angle})|(?<=\[)(?-i:{word.upper()}\])|(?<=◁){word}▷)"
    return rf"[<\[◁](?:(?<!`.){rest}|{rest}(?!`))"


OPENING = _mark(
    rf"{_TAG}>|\|(?:begin_of_|start_of_|begin_|start_)?{_NAME}\|>"
    r"|\|inner_prefix\|>|\|im_start\|>think\b"
    r"|\|channel\|?>(?:analysis|commentary|thought)[^<`\n]{0,80}+(?:<\|message\|>)?+",
    "think",
)
"""Pattern of marks that open a thought anywhere in a text; not case-sensitive."""
CLOSING = _mark(
    rf"/{_TAG}>|\|(?:/|end_of_|end_){_NAME}\|>|/\|{_NAME}\|>"
    r"|\|inner_suffix\|>|channel\|>|\|im_start\|>answer\b"
    r"|(?:\|end\|>(?:<\|start\|>assistant)?<|\|start\|>assistant<)?\|channel\|>final(?:<\|message\|>)?+",
    "/think",
)
"""Pattern of marks that close a thought."""
_AT_START = (
    r"(?:[a-z]{1,16}_)?(?:reasoning|reason|rationale|analysis|reflection|scratch_?pad|monologue|cot"
    r"|thinking|thought)(?:_(?:process|trace|steps?))?"
)
"""Names of tags that mark a thought only at the beginning of a text; elsewhere they are part of an
answer."""

_OPENING, _CLOSING = re.compile(OPENING, re.IGNORECASE), re.compile(CLOSING, re.IGNORECASE)
_BEGINS = re.compile(rf"\s*(?:(?P<mark>{OPENING})|<(?P<name>{_AT_START})>)", re.IGNORECASE)
_ENDS = re.compile(rf"(?:{OPENING}|<{_AT_START}>)\s*\Z", re.IGNORECASE)
_CLOSING_WORDS = {
    "inner_prefix": "inner_suffix",
    "begin_": "end_",
    "start_": "end_",
    "START_": "END_",
    "<|im_start|>think": "<|im_start|>answer",
}
"""Part of an opening mark -> its counterpart in the closing mark; the first that occurs counts."""
_TAIL = 256
"""Number of ids at the end of a context that are searched for a mark; each byte may be an id."""


def after_thinking(text: str) -> str:
    """Return the text after the last thought. A later thought that is never closed is cut off,
    because it holds no answer."""
    start = _last_closing(text)[1]
    opened = _OPENING.search(text, start)
    return text[start : opened.start() if opened else len(text)]


def split_thinking(text: str) -> tuple[str, str | None]:
    """Split a model's output into (thinking, reply).

    The reply follows the last closing mark. The opening mark may be missing, because chat templates
    can write it. Without a closing mark the whole text is the reply, unless it begins with an
    opening mark: then there is no reply.

    >>> split_thinking("<think>2 + 2</think>\\n4")
    ('2 + 2', '4')
    >>> split_thinking("<think>hm")
    ('hm', None)
    """
    begins = _BEGINS.match(text)
    end, start = _last_closing(text)
    thinking = text[begins.end() if begins else 0 : end].strip()
    if start > end:
        return thinking, text[start:].strip()
    return (text[begins.end() :].strip(), None) if begins else ("", text.strip())


def _last_closing(text: str) -> tuple[int, int]:
    """(start, end) of the last closing mark; (0, 0) without one.

    If the leading tag is never closed, both are the length of the text.
    """
    end = start = 0
    if name := leading_tag(text):
        close = re.search(rf"(?<!`)</{name}>|</{name}>(?!`)", text, re.IGNORECASE)
        if close is None:
            return len(text), len(text)
        end, start = close.span()
    for mark in _CLOSING.finditer(text, start):
        end, start = mark.span()
    return end, start


def leading_tag(text: str) -> str:
    """Return the name of the tag at the beginning of ``text`` that marks a thought only there, or
    ""."""
    begins = _BEGINS.match(text)
    return (begins["name"] if begins else None) or ""


def opened_in(text: str) -> str:
    """Return the opening mark at the end of ``text`` with the white space after it, or ""."""
    mark = _ENDS.search(text[-_TAIL:])
    return mark[0] if mark else ""


def opened_by(codec: TokenCodec, context: Sequence[int] | npt.NDArray[np.int64]) -> str:
    """Return the opening mark of a thought at the end of ``context``, or "" if none is open."""
    opened_thought = getattr(codec, "opened_thought", None)
    if opened_thought is not None:
        return opened_thought(context)
    return opened_in(codec.decode(context[-_TAIL:]))


def as_said(opened: str, text: str) -> str:
    """Put the mark of a thought that the prompt opened in front of the sampled text.

    Args:
        opened: the result of :func:`opened_by`.
        text: the sampled text; it is unchanged if it is empty or repeats the mark.
    """
    repeats = text.lstrip().lower().startswith(opened.strip().lower())
    return text if not text or repeats else opened + text


def closing_of(opened: str) -> str:
    """Return the closing mark of the opening mark ``opened``; by default ``</think>``.

    >>> closing_of("<seed:think>\\n"), closing_of("[THINK]"), closing_of("<|begin_of_thought|>")
    ('</seed:think>', '[/THINK]', '<|end_of_thought|>')
    """
    mark = opened.strip()
    if "<|channel|>" in mark:
        return "<|end|><|start|>assistant<|channel|>final<|message|>"
    for before, after in _CLOSING_WORDS.items():
        if before in mark:
            return mark.replace(before, after)
    match = re.match(rf"(<\|?|\[|◁)({_TAG}|{_AT_START})(\|?>|\]|▷)", mark, re.IGNORECASE)
    return f"{match[1]}/{match[2]}{match[3]}" if match else "</think>"


def behind_thought(opened: str, text: str) -> str:
    """Adapt a ``text`` by another author to a context with an open thought.

    A text without a thought gets the closing mark first, because text inside a thought is not an
    answer.

    Args:
        opened: the result of :func:`opened_by`; with "" the text is unchanged.
        text: a whole reply.
    """
    if not opened or not text:
        return text
    if begins := _BEGINS.match(text):
        return text[begins.end() :]
    return text if _CLOSING.search(text) else f"\n{closing_of(opened)}\n\n{text}"
