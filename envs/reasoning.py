"""Parses reasoning: finds ``<strategy>`` blocks and removes answers from the text.

Every function takes linear time, also on malformed text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from coterie.datatypes.thinking import after_thinking
from coterie.rewards.grading.answers.extract import LONGEST, Candidate, candidates, last_stated

_BLOCK = re.compile(r"<(/?)strategy(?:\s[^<>]*)?>", re.IGNORECASE)
_ANSWER_NAME = r"final_answer|final-answer|answer|outcome|result|strategy_\w*?outcome"
ANSWER_TAG = re.compile(rf"<(/?)({_ANSWER_NAME})(?:\s[^<>]*)?>", re.IGNORECASE)
"""An opening or closing tag whose content is an answer; groups: slash, name."""

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_ANSWER_LINE = re.compile(
    r"[*_#>\s-]*(?:####|ans\.|(?:(?:the|my|our)\s+)?(?:final\s+)?(?:answer|ans|outcome|result)"
    r"[*_]*\s?[*_]*(?::|=|is\b))",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[*_#>\s-]*final\s+answer[*_#\s.]*", re.IGNORECASE)
_ANSWER_TAIL = re.compile(
    r"####.*|(?:\b(?:the|my|our)\s)?(?:\bfinal\s)?\bans(?:wer)?[*_]{0,3}"
    r"(?:\s(?:to|of|for)\b[^.:=]{0,48}?)?\s?[*_]{0,3}(?::|=|\bis\b).*",
    re.IGNORECASE,
)
_IS_THE_ANSWER = re.compile(
    r"\b(?:is|as)\s(?:the|my|our)\s(?:final\s|correct\s)?answer\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"[.!?;:]\s|,\s(?=(?:and|hence|so|then|therefore|thus|which)\b)")
_ANY_TAG = re.compile(r"</?[A-Za-z_][\w:.-]*(\s[^<>]*)?>")
_PASSES = 8
_VALUE_WITHIN = 512
"""Characters between a heading or a name in JSON and its value."""
_GAP = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")


@dataclass(frozen=True)
class Strategy:
    """A ``<strategy>`` block."""

    text: str
    """The content of the block."""
    outcome: str | None
    """The content of its last answer tag."""


def strategies(text: str) -> list[Strategy]:
    """Return the closed strategy blocks of ``text`` in order. An opening tag discards a block that
    was not closed."""
    blocks: list[Strategy] = []
    start: int | None = None
    for tag in _BLOCK.finditer(text):
        if not tag[1]:
            start = tag.end()
        elif start is not None:
            inner = text[start : tag.start()]
            blocks.append(Strategy(inner, tagged_answer(inner)))
            start = None
    return blocks


def tagged_answer(text: str) -> str | None:
    """Return the stripped content of the answer tag that is closed last."""
    span: tuple[int, int] | None = None
    opened: dict[str, int] = {}
    for tag in ANSWER_TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            opened[name] = tag.end()
        elif name in opened:
            span = (opened.pop(name), tag.start())
    return None if span is None else text[slice(*span)].strip()


def strip_answers(text: str) -> str:
    """Remove stated answers from ``text``, then all other tags.

    Answer tags, boxes, answer lines, "final answer is ..." tails and "... is the answer" clauses go
    with their content; so do lines that state one in any other form that a grader reads. An answer
    tag or box that is never closed extends to the end.
    """
    stated = candidates(text)
    text = _without_corrections(text, stated)
    text = _without_boxes(_without_answer_tags(text))
    kept: list[str] = []
    announced = False
    for line in text.splitlines():
        if announced and line.strip():
            # A line without letters or digits opens a formula; the answer is still to come.
            announced = re.search(r"\w", line) is None
            continue
        # An answer is marked early in its line; the bound limits the time on long lines.
        if mark := _ANSWER_LINE.match(line.lstrip()[:100]):
            # "Final answer:" without content announces the next line.
            announced = not line.lstrip()[mark.end() :].strip(" \t*_")
            continue
        if _HEADING.fullmatch(line.strip()[:100]):
            announced = True
            continue
        line = _ANY_TAG.sub(_drop, _without_verdict(_ANSWER_TAIL.sub("", line))).rstrip()
        if line.strip():
            kept.append(_GAP.sub(" ", line))
    return _without_stated("\n".join(kept).strip(), marked=bool(stated)).strip()


def leaks(hint: str, gold: str) -> bool:
    """Whether the gold answer occurs in the hint as a separate word."""
    gold = gold.strip().casefold()
    if not gold:
        return False
    inside = rf"(?<![\w.]){re.escape(gold)}(?!\w|\.\d)"
    return re.search(inside, hint.casefold()) is not None


def _without_corrections(text: str, stated: Sequence[Candidate]) -> str:
    """Remove lines such as "Correction: 4", which say nothing once the first answer is gone."""
    visible = after_thinking(text)
    hidden = text.removesuffix(visible)
    return hidden + _without_lines(visible, [one for one in stated if one.corrects])


def _without_stated(text: str, *, marked: bool) -> str:
    """Remove the lines that still state an answer: in JSON, below a heading, in other languages.

    Args:
        text: without what is easily recognised.
        marked: whether the whole trace marked its answer. Else a grader may read one in bold in
            the last line, or after ``A:``.
    """
    text = text[-LONGEST:]
    for _ in range(_PASSES):
        if not (stated := candidates(text)):
            break
        text = _without_lines(text, stated)
    if stated := candidates(text):
        # Each removed answer uncovered another one.
        text = text[: stated[0].start]
    if marked:
        return text
    if last := last_stated(text):
        return _without_lines(text, [last])
    before, _, line = text.rpartition("\n")
    return before if "**" in line else text


def _without_lines(text: str, stated: Sequence[Candidate]) -> str:
    """Remove each candidate's line, and the lines down to its value."""
    kept, position = "", 0
    for one in stated:
        if one.start < position:
            continue
        kept += text[position : max(position, text.rfind("\n", 0, one.start) + 1)]
        value = text.find(one.text.partition("\n")[0], one.start, one.start + _VALUE_WITHIN)
        end = text.find("\n", max(value, one.start))
        position = len(text) if end < 0 else end + 1
    return kept + text[position:]


def _without_verdict(line: str) -> str:
    """Cut ``line`` before the clause that contains "is the answer"."""
    verdict = _IS_THE_ANSWER.search(line)
    if verdict is None:
        return line
    ends = [clause.end() for clause in _CLAUSE.finditer(line, 0, verdict.start())]
    return line[: ends[-1]] if ends else ""


def _without_answer_tags(text: str) -> str:
    kept: list[str] = []
    position = 0
    inside: str | None = None
    depth = 0
    for tag in ANSWER_TAG.finditer(text):
        closes, name = bool(tag[1]), tag[2].lower()
        if inside is None:
            kept.append(text[position : tag.start()])
            position = tag.end()
            if not closes:
                inside, depth = name, 1
        elif name == inside:
            depth += -1 if closes else 1
            if not depth:
                inside, position = None, tag.end()
    if inside is None:
        kept.append(text[position:])
    return "".join(kept)


def _without_boxes(text: str) -> str:
    kept: list[str] = []
    position = 0
    while box := _BOX.search(text, position):
        kept.append(text[position : box.start()])
        position = _end_of_argument(text, box.end())
    kept.append(text[position:])
    return "".join(kept)


def _end_of_argument(text: str, start: int) -> int:
    """End of the argument at ``start``, which is a braced group or one word."""
    if text[start : start + 1] != "{":
        word = re.compile(r"[^\s$]*").match(text, start)
        return word.end() if word else start
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return brace.end()
    return len(text)


def _drop(tag: re.Match[str]) -> str:
    # Keep "a <b and c> d", which is an inequality; <step n="1"> is a tag.
    attributes = tag[1]
    return tag[0] if attributes and attributes.strip(" /") and "=" not in attributes else ""
