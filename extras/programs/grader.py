"""Problems of kind ``code``: a response is right if its program passes the problem's tests."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from coterie.datatypes import Problem, UserError, Verdict
from coterie.extras.programs.sandbox import ProgramLimits, ProgramTests, check_guard, run
from coterie.rewards.grading.answers import after_thinking
from coterie.teams.settings import ScoringSettings

LONGEST = 1 << 16
"""Maximum number of characters of a program; longer ones are refused."""

_FENCE = re.compile(r"^[ \t]{0,3}```([^\n`]{0,40})$", re.MULTILINE)


def program_in(response: str, entry: str, prompt: str) -> str | None:
    """Extract the program of a response; None if there is none.

    The thinking is skipped. The program is the last fenced block that names ``entry``; else the
    whole text if it defines ``entry``; else, if the text starts with an indented line, the
    continuation of ``prompt``. The prompt comes first, for its imports and helpers.
    """
    text = after_thinking(response)
    blocks = [block for block in _blocks(text) if entry in block]
    defines = re.search(rf"^[ \t]*def[ \t]+{re.escape(entry)}\b", text, re.MULTILINE)
    if blocks:
        return f"{prompt}\n\n{blocks[-1]}"
    if defines:
        return f"{prompt}\n\n{text}"
    first = next((line for line in text.split("\n", 8)[:8] if line.strip()), "")
    return f"{prompt}{text}" if prompt and first[:1] in (" ", "\t") else None


def _blocks(text: str) -> list[str]:
    """Return the contents of all fences; a fence that is never closed extends to the end."""
    blocks: list[str] = []
    start: int | None = None
    for mark in _FENCE.finditer(text):
        if start is None:
            start = mark.end() + 1
        else:
            blocks.append(text[start : mark.start()])
            start = None
    return blocks if start is None else [*blocks, text[start:]]


class ProgramGrader:
    """A :class:`coterie.rewards.grading.scorer.Grader`; ``workers`` programs run at once."""

    def __init__(self, limits: ProgramLimits = ProgramLimits(), workers: int = 1) -> None:  # noqa: B008 (frozen)
        if not limits.deadline_s > 0 or limits.memory_mb < 64:
            raise UserError(
                f"a program needs a deadline above 0 s and 64 MB at least, not "
                f"{limits.deadline_s} s and {limits.memory_mb} MB"
            )
        self.limits = limits
        self.workers = workers

    def __call__(self, requests: Sequence[tuple[str, Problem]]) -> list[Verdict]:
        """Return one verdict per request; ``method`` says how the run ended (``tests`` whether or
        not all tests passed)."""
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(lambda request: self._verdict(*request), requests))

    def _verdict(self, response: str, problem: Problem) -> Verdict:
        tests = tests_of(problem)
        program = program_in(response, tests.entry, tests.prompt)
        if program is None:
            return Verdict(False, None, "none")
        answer = program.removeprefix(tests.prompt).strip()
        if len(program) > LONGEST + len(tests.prompt):
            return Verdict(False, answer[:LONGEST], "refused")
        outcome = run(program, tests, self.limits)
        method = "tests" if outcome in ("passed", "failed") else outcome
        return Verdict(outcome == "passed", answer, method)


def grader_of(settings: ScoringSettings) -> ProgramGrader:
    """Create the grader of a run.

    Raises:
        UserError: no program can run under the limits.
    """
    limits = ProgramLimits(settings.program_deadline_s, settings.program_memory_mb)
    return ProgramGrader(limits, settings.workers)


def check(settings: ScoringSettings) -> None:
    """Before sampling, refuse settings that :func:`grader_of` refuses, or a system without guard.

    Raises:
        UserError: the reason, in one sentence.
    """
    grader_of(settings)
    check_guard()


def tests_of(problem: Problem) -> ProgramTests:
    """Return the tests of a problem."""
    parts = [problem.meta.get(name) for name in ("entry_point", "test", "code_prompt")]
    if not all(isinstance(part, str) for part in parts):
        raise UserError(
            f"{problem.id}: a problem of kind code needs entry_point, test and code_prompt in meta"
        )
    return ProgramTests(*map(str, parts))
