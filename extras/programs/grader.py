"""Problems of kind ``code``: a response is right if its program passes the problem's tests."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from coterie.agents.team.settings import ScoringSettings
from coterie.datatypes import Problem, UserError, Verdict
from coterie.extras.programs.fences import program_in
from coterie.extras.programs.sandbox import ProgramLimits, ProgramTests, check_guard, run
from coterie.rewards.grading.answers import after_thinking

LONGEST = 1 << 16
"""Maximum number of characters of a program; longer ones are refused."""


class ProgramGrader:
    """A :class:`coterie.rewards.grading.scorer.Grader`; ``workers`` programs run at once."""

    def __init__(self, limits: ProgramLimits = ProgramLimits(), workers: int = 1) -> None:  # noqa: B008 (frozen)
        self.limits = limits
        self.workers = workers

    def __call__(self, requests: Sequence[tuple[str, Problem]]) -> list[Verdict]:
        """Return one verdict per request; ``method`` says how the run ended (``tests`` whether or
        not all tests passed)."""
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(lambda request: self._verdict(*request), requests))

    def _verdict(self, response: str, problem: Problem) -> Verdict:
        tests = tests_of(problem)
        program = program_in(after_thinking(response), tests.entry, tests.prompt)
        if program is None:
            return Verdict(False, None, "none")
        answer = program.blocks[program.home].strip()
        if len(answer) > LONGEST:
            return Verdict(False, answer[:LONGEST], "refused")
        outcome = run(program, tests, self.limits)
        method = "tests" if outcome in ("passed", "failed") else outcome
        return Verdict(outcome == "passed", answer, method)


def grader_of(settings: ScoringSettings) -> ProgramGrader:
    """Create the grader of a run."""
    limits = ProgramLimits(settings.program_deadline_s, settings.program_memory_mb)
    return ProgramGrader(limits, settings.workers)


def check(settings: ScoringSettings) -> None:
    """Before sampling, refuse a system without guard.

    Raises:
        UserError: the reason, in one sentence.
    """
    check_guard()


def tests_of(problem: Problem) -> ProgramTests:
    """Return the tests of a problem."""
    parts = [problem.meta.get(name) for name in ("entry_point", "test", "code_prompt")]
    if not all(isinstance(part, str) for part in parts):
        raise UserError(
            f"{problem.id}: a problem of kind code needs entry_point, test and code_prompt in meta"
        )
    return ProgramTests(*map(str, parts))
