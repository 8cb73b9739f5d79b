"""Turning a teacher's trace into a hint that does not state its answer.

CoRe, arXiv:2601.21600, appendix A.1. Arithmetic may still reveal the answer; :func:`leaks` measures
that.
"""

import re
from collections.abc import Callable, Collection

from envs.bytes_codec import TextMeter
from envs.core_teaching.settings import End
from envs.core_teaching.strategies import ANSWER_TAG, Strategy, strategies
from rewards.answers.extract import after_thinking, extract

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
_GAP = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_NOISE = re.compile(r"[\s$*.。!()\[\]{}\\]+")


def strip_answers(text: str) -> str:
    """``text`` without its stated answers and what they hold, then without its other tags.

    Answer tags, boxes, answer lines, "final answer is ..." tails and "... is the answer" go with
    their payload; what follows an answer tag or box that is never closed goes too.
    """
    text = _without_boxes(_without_answer_tags(text))
    kept: list[str] = []
    announced = False
    for line in text.splitlines():
        if announced and line.strip():
            # A line of signs opens the formula that holds the answer.
            announced = re.search(r"\w", line) is None
            continue
        # The mark of an answer stands early in its line; a bound keeps garbage cheap.
        if mark := _ANSWER_LINE.match(line.lstrip()[:100]):
            # "Final answer:" alone announces the line that follows.
            announced = not line.lstrip()[mark.end() :].strip(" \t*_")
            continue
        if _HEADING.fullmatch(line.strip()[:100]):
            announced = True
            continue
        line = _ANY_TAG.sub(_dropped, _without_verdict(_ANSWER_TAIL.sub("", line))).rstrip()
        if line.strip():
            kept.append(_GAP.sub(" ", line))
    return "\n".join(kept).strip()


def hint_source(text: str, answer: str | None, states_gold: Callable[[str], bool]) -> str | None:
    """The part of a correct trace that a hint is made of: its first strategy whose own outcome is
    right, or the whole trace where it has no strategies; None if no strategy is right.

    Args:
        text: the trace, known to be correct.
        answer: its answer, as the verdict has it. A block with the same outcome is right.
        states_gold: whether a text's answer is the gold answer; asked for :func:`hint_checks`.
    """
    text = after_thinking(text)
    blocks = strategies(text)
    if not blocks:
        return text
    for block in blocks:
        if _agrees(block, answer) or states_gold(block.text):
            return block.text
    return None


def hint_checks(text: str) -> list[str]:
    """The texts that :func:`hint_source` may ask about if ``text`` turns out to be correct."""
    text = after_thinking(text)
    blocks = strategies(text)
    answer = extract(text) if blocks else None
    asked: list[str] = []
    for block in blocks:
        if _agrees(block, answer):
            break
        asked.append(block.text)
    return asked


def build_hint(
    source: str, answers: Collection[str], meter: TextMeter, limit: int, keep: End
) -> str | None:
    """The hint for one student, at most ``limit`` of its tokens; None if nothing remains, or
    nothing but one of ``answers`` (wordings of the gold answer)."""
    stripped = strip_answers(source)
    if _bare(stripped) in {"", *map(_bare, answers)}:
        return None
    return meter.truncate(stripped, limit, keep=keep).strip() or None


def leaks(hint: str, gold: str) -> bool:
    """Whether the gold answer occurs in the hint, as a word of its own."""
    gold = gold.strip().casefold()
    if not gold:
        return False
    inside = rf"(?<![\w.]){re.escape(gold)}(?!\w|\.\d)"
    return re.search(inside, hint.casefold()) is not None


def _agrees(block: Strategy, answer: str | None) -> bool:
    return block.outcome is not None and block.outcome == answer


def _bare(text: str) -> str:
    return _NOISE.sub("", text).casefold()


def _without_verdict(line: str) -> str:
    """``line`` up to the clause that ends with "is the answer"."""
    found = _IS_THE_ANSWER.search(line)
    if found is None:
        return line
    ends = [clause.end() for clause in _CLAUSE.finditer(line, 0, found.start())]
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
    """Where the argument at ``start`` ends: a braced group or one word."""
    if text[start : start + 1] != "{":
        word = re.compile(r"[^\s$]*").match(text, start)
        return word.end() if word else start
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return brace.end()
    return len(text)


def _dropped(tag: re.Match[str]) -> str:
    # "a <b and c> d" is an inequality, <step n="1"> is a tag.
    attributes = tag[1]
    return tag[0] if attributes and attributes.strip(" /") and "=" not in attributes else ""
