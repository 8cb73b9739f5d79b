"""How models mark a thought in their text, and what follows it.

``<think>`` is the usual mark; families of models have others (``[THINK]``, ``<seed:think>``,
``<|begin_of_thought|>``, the channels of gpt-oss). A chat template may open the thought itself:
then the mark stands in the prompt, and :func:`opened_by` finds it there.
"""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coterie.datatypes.policy import TokenCodec

_NAME = r"(?:\w{1,16}:)?(?:think|thinking|thoughts?)"
_TAG = r"(?:(?!end_|no_)\w{1,16}[:_])?(?:think|thinking|thoughts?)(?:_fast(?:er)?)?"


def _mark(angle: str, word: str) -> str:
    """The pattern of marks that begin with ``<`` and go on with ``angle``, or are ``word`` in
    brackets.

    A mark in backticks is only spoken of. Every mark begins with one of three characters, and so
    does the pattern: most of a long text is passed over at once.
    """
    rest = rf"(?:(?<=<)(?:{angle})|(?<=\[)(?-i:{word.upper()}\])|(?<=◁){word}▷)"
    return rf"[<\[◁](?:(?<!`.){rest}|{rest}(?!`))"


OPENING = _mark(
    rf"{_TAG}>|\|(?:begin_of_|start_of_|begin_|start_)?{_NAME}\|>"
    r"|\|inner_prefix\|>|\|im_start\|>think\b"
    r"|\|channel\|?>(?:analysis|commentary|thought)[^<`\n]{0,80}+(?:<\|message\|>)?+",
    "think",
)
"""Pattern of the marks that open a thought wherever they stand; not case-sensitive."""
CLOSING = _mark(
    rf"/{_TAG}>|\|(?:/|end_of_|end_){_NAME}\|>|/\|{_NAME}\|>"
    r"|\|inner_suffix\|>|channel\|>|\|im_start\|>answer\b"
    r"|(?:\|end\|>(?:<\|start\|>assistant)?<|\|start\|>assistant<)?\|channel\|>final(?:<\|message\|>)?+",
    "/think",
)
"""Pattern of the marks that close one."""
_AT_START = (
    r"(?:[a-z]{1,16}_)?(?:reasoning|reason|rationale|analysis|reflection|scratch_?pad|monologue|cot"
    r"|thinking|thought)(?:_(?:process|trace|steps?))?"
)
"""Names of tags that hold a thought where a text begins with them; elsewhere they are parts of an
answer."""

_OPENING, _CLOSING = re.compile(OPENING, re.IGNORECASE), re.compile(CLOSING, re.IGNORECASE)
_BEGINS = re.compile(rf"\s*(?:(?P<mark>{OPENING})|<(?P<name>{_AT_START})>)", re.IGNORECASE)
_ENDS = re.compile(rf"(?:{OPENING}|<{_AT_START}>)\s*\Z", re.IGNORECASE)
_TAIL = 256
"""Ids at the end of a context in which the mark is looked for: a mark may be a byte to an id."""


def after_thinking(text: str) -> str:
    """What follows the last mark that closes a thought.

    A thought that is opened and never closed is dropped: nothing in it is an answer yet.
    """
    start = _thought(text)[1]
    opened = _OPENING.search(text, start)
    return text[start : opened.start() if opened else len(text)]


def split_thinking(text: str) -> tuple[str, str | None]:
    """``(thinking, reply)`` of a model's output.

    The reply is what follows the last closing mark; the opening one may be missing, as chat
    templates write it themselves. Without a closing mark the whole text is the reply, unless it
    begins by thinking: then there is none.

    >>> split_thinking("<think>2 + 2</think>\\n4")
    ('2 + 2', '4')
    >>> split_thinking("<think>hm")
    ('hm', None)
    """
    begins = _BEGINS.match(text)
    end, start = _thought(text)
    thinking = text[begins.end() if begins else 0 : end].strip()
    if start > end:
        return thinking, text[start:].strip()
    return (text[begins.end() :].strip(), None) if begins else ("", text.strip())


def _thought(text: str) -> tuple[int, int]:
    """Where the closing mark of the last thought begins and ends: both 0 where nothing closes one,
    and both the length of the text where its leading tag is never closed."""
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
    """The name of a tag that holds a thought only because ``text`` begins with it; empty without
    one."""
    begins = _BEGINS.match(text)
    return (begins["name"] if begins else None) or ""


def opened_in(text: str) -> str:
    """The mark at the end of ``text`` that opens a thought, with the white space behind it; empty
    where there is none."""
    mark = _ENDS.search(text[-_TAIL:])
    return mark[0] if mark else ""


def opened_by(codec: TokenCodec, context: Sequence[int] | npt.NDArray[np.int64]) -> str:
    """The beginning of the assistant's text that stands in ``context`` already, where that is a
    thought which is open; empty elsewhere."""
    told = getattr(codec, "opened_thought", None)
    if told is not None:
        return told(context)
    return opened_in(codec.decode(context[-_TAIL:]))


def as_said(opened: str, text: str) -> str:
    """``text`` as its author's whole turn: with the thought that the prompt opened.

    Args:
        opened: of :func:`opened_by`.
        text: what was sampled. Where it is empty, or repeats the mark, it stays as it is.
    """
    repeats = text.lstrip().lower().startswith(opened.strip().lower())
    return text if not text or repeats else opened + text


def closing_of(opened: str) -> str:
    """The mark that closes the thought that ``opened`` opens; ``</think>`` where there is no rule.

    >>> closing_of("<seed:think>\\n"), closing_of("[THINK]"), closing_of("<|begin_of_thought|>")
    ('</seed:think>', '[/THINK]', '<|end_of_thought|>')
    """
    mark = opened.strip()
    if "<|channel|>" in mark:
        return "<|end|><|start|>assistant<|channel|>final<|message|>"
    for before, after in (
        *(("inner_prefix", "inner_suffix"), ("begin_", "end_"), ("start_", "end_")),
        *(("START_", "END_"), ("<|im_start|>think", "<|im_start|>answer")),
    ):
        if before in mark:
            return mark.replace(before, after)
    match = re.match(rf"(<\|?|\[|◁)({_TAG}|{_AT_START})(\|?>|\]|▷)", mark, re.IGNORECASE)
    return f"{match[1]}/{match[2]}{match[3]}" if match else "</think>"


def behind_thought(opened: str, text: str) -> str:
    """``text`` of somebody else, to stand in a context that has opened a thought.

    A text without a thought of its own closes it first: what stands in it would be no answer.

    Args:
        opened: of :func:`opened_by`; empty leaves ``text`` alone.
        text: a whole reply.
    """
    if not opened or not text:
        return text
    if begins := _BEGINS.match(text):
        return text[begins.end() :]
    return text if _CLOSING.search(text) else f"\n{closing_of(opened)}\n\n{text}"
