"""Whose cold trace becomes the hint, and what the hint says.

CoRe, arXiv:2601.21600, algorithm 1 and appendix A.1. Arithmetic may still reveal the answer;
:func:`leaks` measures that.
"""

# B cold traces in agent order

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from coterie.datatypes import Problem
from coterie.envs.bytes_codec import TextMeter
from coterie.envs.core_teaching.scoring import Hint, Trace
from coterie.envs.core_teaching.settings import (
    CoreTeachingSettings,
    End,
    Reread,
    TeacherChoice,
)
from coterie.envs.reasoning import Strategy, strategies, strip_answers
from coterie.rewards.grading.answers.extract import after_thinking, extract

Taught = Literal["all", "peer", "own"]

_NOISE = re.compile(r"[\s$*.。!()\[\]{}\\]+")


def hints_for(
    traces: Sequence[Trace],
    value_B: npt.ArrayLike,
    problem: Problem,
    settings: CoreTeachingSettings,
    meters: Mapping[str, TextMeter],
    states_gold: Callable[[str], bool],
    *,
    step: int,
    among: Taught = "all",
) -> dict[str, Hint]:
    """Role -> its hint, for every role of ``meters`` that there is one for.

    Args:
        value_B: provisional rewards.
        meters: role -> the meter of its tokens, in the order of the roles.
        states_gold: whether a text's answer is the gold answer.
        step: whose turn it is when teachers rotate.
        among: whose traces may teach a role: all, its peers', or its own.
    """
    taught: dict[str, Hint] = {}
    sources: dict[int, str | None] = {}
    for role, meter in meters.items():
        place = choose_teacher(
            traces,
            value_B,
            choice=settings.teacher,
            student=role,
            roles=tuple(meters),
            step=step,
            among=among,
        )
        if place is None:
            continue
        teacher = traces[place]
        if place not in sources:
            sources[place] = hint_source(teacher.text, teacher.verdict.answer, states_gold)
        if (source := sources[place]) is None:
            continue
        answers = (*problem.golds, teacher.verdict.answer or "")
        text = build_hint(source, answers, meter, settings.hint_tokens, settings.truncate)
        if text is not None:
            taught[role] = Hint(teacher.agent, text)
    return taught


def choose_teacher(
    traces: Sequence[Trace],
    value_B: npt.ArrayLike,
    *,
    choice: TeacherChoice,
    student: str,
    roles: Sequence[str],
    step: int,
    among: Taught = "all",
) -> int | None:
    """Index of the correct cold trace that teaches the role ``student``; None if none is correct.

    Within whatever ``choice`` prefers the largest provisional reward wins (CoRe,
    arXiv:2601.21600, algorithm 1), ties by the order of the traces. ``rotating`` prefers
    ``roles[step % N]``, then the next one, until one has a correct trace. ``difficulty-routed``
    does that where at least half of the cold traces are right, so that easy questions are not all
    taught in one style, and prefers the role with the most correct traces elsewhere, whose success
    is least likely to be luck.

    Args:
        traces: B cold traces of a question.
        value_B: provisional rewards.
        choice: see ``CoreTeachingSettings.teacher``.
        student: the role that is taught.
        roles: all roles, in order.
        step: whose turn it is when teachers rotate.
        among: whose traces may teach: all, the student's peers', or its own.
    """
    pool = [
        place
        for place, trace in enumerate(traces)
        if among == "all" or (trace.role == student) == (among == "own")
    ]
    correct = [place for place in pool if traces[place].verdict.correct]
    if not correct:
        return None
    value_B = np.asarray(value_B, dtype=np.float64)
    by_role = {role: [place for place in correct if traces[place].role == role] for role in roles}
    turn = step % len(roles)
    in_turn = next(by_role[role] for role in [*roles[turn:], *roles[:turn]] if by_role[role])
    easy = 2 * len(correct) >= len(pool)
    if choice == "prefer-peer":
        preferred = [place for place in correct if traces[place].role != student]
    elif choice == "rotating" or (choice == "difficulty-routed" and easy):
        preferred = in_turn
    elif choice == "difficulty-routed":
        preferred = max(by_role.values(), key=len)
    else:
        preferred = correct
    # max keeps the first of equals.
    return max(preferred or correct, key=lambda place: value_B[place])


def to_reread(
    traces: Sequence[Trace], taught: Mapping[str, Hint], which: Reread
) -> dict[str, Hint]:
    """Agent -> its role's hint, for cold traces that are read once more after its hint.

    Args:
        traces: the cold traces of a question.
        taught: role -> its hint.
        which: see ``CoreTeachingSettings.reread``.
    """
    right = {trace.role for trace in traces if trace.verdict.correct}
    wrong = {trace.role for trace in traces if not trace.verdict.correct}
    return {
        trace.agent: taught[trace.role]
        for trace in traces
        if trace.role in taught
        if which == "all"
        or (which == "wrong" and not trace.verdict.correct)
        or (which == "unsolved" and trace.role not in right)
        or (which == "alike" and trace.role not in right & wrong)
    }


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
    """The hint for one student; None if nothing remains, or nothing but an answer.

    Args:
        source: see :func:`hint_source`.
        answers: wordings of the gold answer.
        meter: of the student's tokens.
        limit: most tokens.
        keep: which end of a longer one is kept.
    """
    stripped = strip_answers(source)
    if _letters(stripped) in {"", *map(_letters, answers)}:
        return None
    return meter.truncate(stripped, limit, keep=keep).strip() or None


def _agrees(block: Strategy, answer: str | None) -> bool:
    return block.outcome is not None and block.outcome == answer


def _letters(text: str) -> str:
    return _NOISE.sub("", text).casefold()
