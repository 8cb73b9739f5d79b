"""Problems of kind ``code``: a response is right when its program passes the problem's tests."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from rewards.programs.program import LONGEST, program_in
from rewards.programs.sandbox import Limits, ProgramTests, run
from vocabulary import Problem, UserError, Verdict


class ProgramGrader:
    """A :class:`rewards.scorer.Grader`; ``workers`` programs run at once."""

    def __init__(self, limits: Limits = Limits(), workers: int = 1) -> None:  # noqa: B008 (frozen)
        if not limits.deadline_s > 0 or limits.memory_mb < 64:
            raise UserError(
                f"a program needs a deadline above 0 s and 64 MB at least, not "
                f"{limits.deadline_s} s and {limits.memory_mb} MB"
            )
        self.limits = limits
        self.workers = workers

    def __call__(self, requests: Sequence[tuple[str, Problem]]) -> list[Verdict]:
        """One verdict per request; ``method`` says how the run ended (``tests`` where all or not
        all of them passed)."""
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(lambda request: self._one(*request), requests))

    def _one(self, response: str, problem: Problem) -> Verdict:
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


def tests_of(problem: Problem) -> ProgramTests:
    """The tests that a problem carries."""
    parts = [problem.meta.get(name) for name in ("entry_point", "test", "code_prompt")]
    if not all(isinstance(part, str) for part in parts):
        raise UserError(
            f"{problem.id}: a problem of kind code needs entry_point, test and code_prompt in meta"
        )
    return ProgramTests(*map(str, parts))
