"""Whose cold trace becomes the hint, and what the hint says."""

# B cold traces in agent order

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envs.bytes_codec import TextMeter
from envs.core_teaching.hints import build_hint, hint_source
from envs.core_teaching.scoring import Trace
from envs.core_teaching.settings import CoreTeachingSettings, TeacherChoice
from vocabulary import Problem


@dataclass(frozen=True)
class Lesson:
    """What one role is taught."""

    teacher: str
    """The agent whose trace was chosen."""
    hint: str
    """The hint made of it, in the student's length."""


def lessons(
    traces: Sequence[Trace],
    value_B: npt.ArrayLike,
    problem: Problem,
    settings: CoreTeachingSettings,
    meters: Mapping[str, TextMeter],
    states_gold: Callable[[str], bool],
    *,
    step: int,
) -> dict[str, Lesson]:
    """Role -> its lesson, for every role of ``meters`` that there is a hint for.

    Args:
        value_B: provisional rewards.
        meters: role -> the meter of its tokens, in the order of the roles.
        states_gold: whether a text's answer is the gold answer.
        step: whose turn it is when teachers rotate.
    """
    taught: dict[str, Lesson] = {}
    sources: dict[int, str | None] = {}
    for role, meter in meters.items():
        place = choose_teacher(
            traces, value_B, choice=settings.teacher, student=role, roles=tuple(meters), step=step
        )
        if place is None:
            continue
        teacher = traces[place]
        if place not in sources:
            sources[place] = hint_source(teacher.text, teacher.verdict.answer, states_gold)
        if (source := sources[place]) is None:
            continue
        answers = (problem.gold, teacher.verdict.answer or "")
        hint = build_hint(source, answers, meter, settings.hint_tokens, settings.truncate)
        if hint is not None:
            taught[role] = Lesson(teacher.agent, hint)
    return taught


def choose_teacher(
    traces: Sequence[Trace],
    value_B: npt.ArrayLike,
    *,
    choice: TeacherChoice,
    student: str,
    roles: Sequence[str],
    step: int,
) -> int | None:
    """Index of the correct cold trace that teaches the role ``student``; None if none is correct.

    Within whatever ``choice`` prefers the largest provisional reward wins (CoRe,
    arXiv:2601.21600, algorithm 1), ties by the order of the traces. ``rotating`` prefers
    ``roles[step % N]``, then the next one, until one has a correct trace. ``difficulty-routed``
    does that where at least half of the cold traces are right, so that easy questions are not all
    taught in one style, and prefers the role with the most correct traces elsewhere, whose success
    is least likely to be luck.
    """
    correct = [place for place, trace in enumerate(traces) if trace.verdict.correct]
    if not correct:
        return None
    value_B = np.asarray(value_B, dtype=np.float64)
    by_role = {role: [place for place in correct if traces[place].role == role] for role in roles}
    turn = step % len(roles)
    in_turn = next(by_role[role] for role in [*roles[turn:], *roles[:turn]] if by_role[role])
    easy = 2 * len(correct) >= len(traces)
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
