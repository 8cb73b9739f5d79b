"""Hints: the choice of the teacher's trace, and its text without the answer.

CoRe, arXiv:2601.21600, algorithm 1 and appendix A.1. Arithmetic in a hint can still reveal the
answer; :func:`coterie.envs.reasoning.leaks` measures that.
"""

# Shapes: B cold traces, in agent order

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
from coterie.rewards.grading.answers.normalise import may_be_name
from coterie.rewards.grading.answers.unmarked import name_unmarked, value_unmarked

Taught = Literal["all", "peer", "own"]

_NOISE = re.compile(r"[\s$*.。!()\[\]{}\\]+")
_CONCLUSIONS = 8
"""How many last sentences may state the answer in words, until there is no hint."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|\n")
_BARE_LIST_MARK = re.compile(r"(?m)^[^\S\n]*(?:\d+[.)]|[-*])\Z")


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
    """Return role -> its hint, for the roles of ``meters`` that have one.

    Args:
        value_B: provisional rewards.
        meters: role -> meter of its tokens, in the order of the roles.
        states_gold: whether the answer of a text is right.
        step: selects the first choice among rotating teachers.
        among: traces that may teach a role: all, its peers', or its own.
    """
    taught: dict[str, Hint] = {}
    sources: dict[int, str | None] = {}
    for role, meter in meters.items():
        chosen = choose_teacher(
            traces,
            value_B,
            choice=settings.teacher,
            student=role,
            roles=tuple(meters),
            step=step,
            among=among,
        )
        if chosen is None:
            continue
        teacher = traces[chosen]
        if chosen not in sources:
            sources[chosen] = hint_source(teacher.text, teacher.verdict.answer, states_gold)
        if (source := sources[chosen]) is None:
            continue
        answer = teacher.verdict.answer or ""
        text = build_hint(source, problem, answer, meter, settings.hint_tokens, settings.truncate)
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
    """Return the index of the correct cold trace that teaches ``student``; None if none is correct.

    ``choice`` prefers some traces, and the largest provisional reward among them wins (CoRe,
    arXiv:2601.21600, algorithm 1); ties go to the first trace. ``rotating`` prefers
    ``roles[step % N]``, or else the next role with a correct trace. ``difficulty-routed`` does the
    same if at least half of the cold traces are right, so that easy questions are not all taught
    in one style. Otherwise it prefers the role with the most correct traces, whose success is
    least likely to be luck.

    Args:
        traces: B cold traces of a question.
        value_B: provisional rewards.
        choice: see ``CoreTeachingSettings.teacher``.
        student: the role that is taught.
        roles: all roles, in order.
        step: selects the first choice among rotating teachers.
        among: traces that may teach: all, the student's peers', or its own.
    """
    pool = [
        i
        for i, trace in enumerate(traces)
        if among == "all" or (trace.role == student) == (among == "own")
    ]
    correct = [i for i in pool if traces[i].verdict.correct]
    if not correct:
        return None
    value_B = np.asarray(value_B, dtype=np.float64)
    by_role = {role: [i for i in correct if traces[i].role == role] for role in roles}
    turn = step % len(roles)
    in_turn = next(by_role[role] for role in [*roles[turn:], *roles[:turn]] if by_role[role])
    easy = 2 * len(correct) >= len(pool)
    if choice == "prefer-peer":
        preferred = [i for i in correct if traces[i].role != student]
    elif choice == "rotating" or (choice == "difficulty-routed" and easy):
        preferred = in_turn
    elif choice == "difficulty-routed":
        preferred = max(by_role.values(), key=len)
    else:
        preferred = correct
    # max returns the first of equal traces.
    return max(preferred or correct, key=lambda i: value_B[i])


def to_reread(
    traces: Sequence[Trace], taught: Mapping[str, Hint], which: Reread
) -> dict[str, Hint]:
    """Return agent -> its role's hint, for cold traces that are reread after the hint.

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


def contrasts(
    traces: Sequence[Trace],
    reread: Collection[str],
    problem: Problem,
    settings: CoreTeachingSettings,
    meters: Mapping[str, TextMeter],
) -> dict[str, str]:
    """Return a hint from another agent's wrong trace for each agent of ``reread``; agents without
    such a trace are left out. Traces of a peer come first. RLCSD (arXiv:2606.11709) takes those of
    the same policy."""
    wrong = [trace for trace in traces if not trace.verdict.correct]
    found: dict[str, str] = {}
    for trace in traces:
        if trace.agent not in reread:
            continue
        others = [other for other in wrong if other.agent != trace.agent]
        for other in sorted(others, key=lambda other: other.role == trace.role):
            text = after_thinking(other.text)
            blocks = strategies(text)
            hint = build_hint(
                blocks[0].text if blocks else text,
                problem,
                other.verdict.answer or "",
                meters[trace.role],
                settings.hint_tokens,
                settings.truncate,
            )
            if hint is not None:
                found[trace.agent] = hint
                break
    return found


def hint_source(text: str, answer: str | None, states_gold: Callable[[str], bool]) -> str | None:
    """Return the part of a correct trace that becomes the hint: the first strategy with a right
    outcome, or the whole trace if it has no strategies; None if no strategy is right.

    Args:
        text: a correct trace.
        answer: its answer in the verdict. Blocks with the same outcome are right.
        states_gold: whether the answer of a text is right; called for :func:`hint_checks` only.
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
    """Return the texts that :func:`hint_source` may check if ``text`` is correct."""
    text = after_thinking(text)
    blocks = strategies(text)
    answer = extract(text) if blocks else None
    checks: list[str] = []
    for block in blocks:
        if _agrees(block, answer):
            break
        checks.append(block.text)
    return checks


def build_hint(
    source: str, problem: Problem, answer: str, meter: TextMeter, limit: int, keep: End
) -> str | None:
    """Return the hint for one student: ``source`` without answers, truncated to ``limit`` tokens;
    None if nothing remains, or only an answer.

    Args:
        source: see :func:`hint_source`.
        problem: the question, with the wordings of its right answer.
        answer: another wording, the teacher's.
        meter: meter of the student's tokens.
        limit: most tokens (``--env.hint-tokens``).
        keep: the end that is kept, ``head`` or ``tail`` (``--env.truncate``).
    """
    stripped = _without_conclusion(strip_answers(source), problem)
    if _letters(stripped) in {"", *map(_letters, (*problem.golds, answer))}:
        return None
    return meter.truncate(stripped, limit, keep=keep).strip() or None


def _without_conclusion(text: str, problem: Problem) -> str:
    """Remove last sentences in which a grader reads the answer without a mark: ``Therefore, 15
    socks are left.`` Empty if sentence after sentence states one."""
    named = problem.kind in ("qa", "text") or any(map(may_be_name, problem.golds))
    for _ in range(_CONCLUSIONS):
        if not (
            value_unmarked(text, problem.question)
            or (named and name_unmarked(text, problem.question))
        ):
            return text
        end = max((found.start() for found in _SENTENCE_END.finditer(text)), default=0)
        text = _BARE_LIST_MARK.sub("", text[:end].rstrip()).rstrip()
    return ""


def _agrees(block: Strategy, answer: str | None) -> bool:
    return block.outcome is not None and block.outcome == answer


def _letters(text: str) -> str:
    return _NOISE.sub("", text).casefold()
