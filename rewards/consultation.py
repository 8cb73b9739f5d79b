"""What a conversation with experts earns (EAPO, arXiv:2509.23730, section 2.1), and its format.

``text`` is everything that the policy wrote itself, turn after turn, without the experts' replies.
Its length costs linear time, whatever it holds.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from coterie.datatypes import AnswerKind, Problem, Verdict
from coterie.datatypes.thinking import CLOSING, OPENING, leading_tag
from coterie.rewards.overlap import squad_f1

CALLS = ("<agent_calls>", "</agent_calls>")
RETURNS = ("<agent_returns>", "</agent_returns>")
THINK = ("<think>", "</think>")
ANSWER = "Answer:"

_ANSWER = r"(?:Answer|(?m:^)[ \t]*answer)[*_]{0,3}[ \t]?:"
"""``Answer:``, also as ``**Answer**:``, or ``answer:`` where it begins a line."""
_MARKS = "|".join((*map(re.escape, (*CALLS, *RETURNS)), _ANSWER))
STATES_ANSWER = re.compile(_ANSWER)

FORMAT_REWARD = 0.1
"""Paid for a wrong answer in the right format."""

AnswerRule = Literal["em_math", "f1_literal", "f1_or_format"]


def answer_reward(rule: AnswerRule, *, credit: float, f1: float, formatted: bool) -> float:
    """Value of the final answer, in [0, 1].

    Args:
        rule: ``f1_literal`` is the paper's: F1 where it is above 0, so that one word of forty
            earns less than a wrong answer in the right format. ``f1_or_format`` pays the larger of
            the two. ``em_math`` pays for an equal value instead of shared words.
        credit: 1 if the answer equals the gold answer in value, 0 if not; a custom checker may
            give partial credit.
        f1: see :func:`coterie.rewards.overlap.squad_f1`.
        formatted: see :func:`coterie.rewards.consultation.is_well_formed`.
    """
    floor = FORMAT_REWARD if formatted else 0.0
    match rule:
        case "em_math":
            return max(float(credit), floor)
        case "f1_literal":
            return f1 if f1 > 0 else floor
        case "f1_or_format":
            return max(f1, floor)


def consult_penalty(calls: int, weight: float) -> float:
    """``-weight`` for each call. The paper announces a penalty (section 1) and
    gives no term; 0 is its rule."""
    return -weight * calls if calls and weight else 0.0


@dataclass(frozen=True)
class ParsedText:
    """The marks in a text."""

    thoughts: int
    """Thoughts that were opened and closed."""
    thinking: bool
    """Whether the text ends inside a thought."""
    balanced: bool
    """Whether the tags of thoughts alternate."""
    thoughts_end: int
    """Offset after the last closing think tag, 0 without one."""
    calls: tuple[tuple[int, int], ...]
    """Payloads [start, end) of complete call blocks outside thoughts."""
    thought_calls: tuple[int, ...]
    """Ends of complete call blocks inside thoughts, which nobody answers."""
    stray: int
    """Call tags without a partner, and return tags, which only the environment writes."""
    answers: tuple[int, ...]
    """Offsets after each ``Answer:``."""


@cache
def _pattern(tag: str) -> re.Pattern[str]:
    """Matches all marks; ``<tag>`` opens a thought as well."""
    opening, closing = (f"{OPENING}|<{tag}>", f"{CLOSING}|</{tag}>") if tag else (OPENING, CLOSING)
    return re.compile(f"{_MARKS}|(?P<open>(?i:{opening}))|(?P<close>(?i:{closing}))")


def read(text: str, *, opened: bool = False) -> ParsedText:
    """Scan ``text``.

    Args:
        text: what the policy wrote.
        opened: whether it begins inside a thought. A closing tag that nothing opened before counts
            as opened at the start in any case.
    """
    thinking, balanced, thoughts, thoughts_end = opened, True, 0, 0
    # The first mark closes a thought: all text before it is that thought.
    marks = list(_pattern(leading_tag(text).lower()).finditer(text))
    first = next((mark.lastgroup for mark in marks if mark.lastgroup), None)
    thinking = thinking or first == "close"
    calls: list[tuple[int, int]] = []
    thought_calls: list[int] = []
    answers: list[int] = []
    stray, open_call = 0, None
    for mark in marks:
        match mark.lastgroup or mark.group():
            case "open":
                balanced &= not thinking
                thinking = True
            case "close":
                balanced &= thinking
                thinking, thoughts, thoughts_end = False, thoughts + 1, mark.end()
            case "<agent_calls>":
                stray += open_call is not None and not thinking
                open_call = mark.end()
            case "</agent_calls>":
                if open_call is None:
                    stray += not thinking
                elif thinking:
                    thought_calls.append(mark.end())
                else:
                    calls.append((open_call, mark.start()))
                open_call = None
            case "<agent_returns>" | "</agent_returns>":
                stray += 1
            case _:
                answers.append(mark.end())
    return ParsedText(
        thoughts=thoughts,
        thinking=thinking,
        balanced=balanced,
        thoughts_end=thoughts_end,
        calls=tuple(calls),
        thought_calls=tuple(thought_calls),
        stray=stray + (open_call is not None and not thinking),
        answers=tuple(answers),
    )


def final_answer(text: str) -> str | None:
    """What follows the last ``Answer:`` outside of thoughts; None where there is none.

    A text that ends inside a thought has not answered yet.
    """
    reading = read(text)
    if reading.thinking or not reading.answers or reading.answers[-1] <= reading.thoughts_end:
        return None
    return text[reading.answers[-1] :].strip() or None


_BOX = r"\boxed"
_LABEL = re.compile(rf"^[ \t]*{ANSWER}[ \t]*", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


def graded_part(text: str, kind: AnswerKind) -> str | None:
    """The part of ``text`` that a grader reads; None if nothing in it answers.

    That is the final answer behind its ``Answer:``. Without one, a result in a box counts: many
    models are trained to write ``\\boxed{}`` and forget the line. It earns no F1 and is not
    well-formed. A program needs no such line: all that stands outside of thoughts and calls counts,
    and a line that begins with ``Answer:`` may go on with code.
    """
    if kind != "code" and final_answer(text) is not None:
        # The line break after it tells a formula of its own from one in the line.
        return ANSWER + text[read(text).answers[-1] :].rstrip()
    reading = read(text)
    if reading.thinking:
        return None
    said, start = "", reading.thoughts_end
    for first, end in reading.calls:
        if first >= start:
            said += text[start : first - len(CALLS[0])] + "\n"
            start = end + len(CALLS[1])
    said += text[start:]
    if kind != "code":
        return said.rstrip() if _BOX in said else None
    said = _LABEL.sub("", said)
    return said if said.strip() else None


def has_answered(text: str, kind: AnswerKind) -> bool:
    """Whether ``text`` states a complete answer: an ``Answer:`` with something after it or, for a
    program, a closed block of code."""
    if final_answer(text) is not None:
        return True
    program = graded_part(text, kind) if kind == "code" else None
    return program is not None and len(_FENCE.findall(program)) > 1


def answer_f1(text: str, verdict: Verdict, problem: Problem) -> float:
    """Word F1 of the final answer in ``text`` and the gold answer. For a program and a choice it is
    the credit: two right programs need not share a word, and F1 drops the article A.

    Args:
        text: what the policy wrote.
        verdict: the verdict on its answer.
        problem: the problem that it answers.
    """
    if problem.kind in ("code", "choice"):
        return float(verdict.credit)
    return squad_f1(final_answer(text) or "", problem.golds)


def is_well_formed(text: str, *, answered_calls: int) -> bool:
    """Whether the conversation keeps the format.

    At least one thought and all of them closed; every call well-formed and answered
    (``answered_calls`` of them); exactly one ``Answer:`` after the last thought, with something
    after it. The paper says "correct format" only; these are the rules of ReSearch
    (arXiv:2503.19470) with its tags.
    """
    reading = read(text)
    final = [offset for offset in reading.answers if offset > reading.thoughts_end]
    return (
        reading.thoughts > 0
        and reading.balanced
        and not reading.thinking
        and not reading.stray
        and len(reading.calls) == answered_calls
        and len(final) == 1
        and bool(text[final[0] :].strip())
    )
