"""Check that the checker of answers tells a right answer from a wrong one."""

from collections.abc import Sequence

from coterie.agents.team.graders import judged_kinds
from coterie.agents.team.settings import ScoringSettings
from coterie.datatypes import Problem, Scorer, Verdict
from coterie.extras.ops.doctor.finding import Finding
from coterie.rewards.grading.answers.checker import UNGRADED, Checker

_FORMS = ("{}", "Answer: {}", r"\boxed{{{}}}")
"""How a right answer may be written; a checker may read one of them only."""
_NO_ANSWER = "I am not sure."


def check_checker(
    scorer: Scorer, settings: ScoringSettings, problems: Sequence[Problem]
) -> Finding:
    """Grade a right and a wrong answer to the first problem whose answers are compared."""
    name = f"--scoring.checker {settings.checker}"
    judged = judged_kinds(settings)
    compared = [p for p in problems if p.kind in judged or p.kind not in UNGRADED]
    if not compared:
        return Finding("checker", "all", f"{name} compares no problem of these", "not measured")
    problem = compared[0]
    rights = [scorer.check(form.format(problem.gold), problem) for form in _FORMS]
    right = max(rights, key=lambda verdict: verdict.credit)
    wrong = scorer.check(_wrong_answer(problem, problems), problem)
    measured = (
        f"{name}: {_describe(right)} for the reference answer {problem.gold!r:.40}, "
        f"{_describe(wrong)} for a wrong one"
    )
    if wrong.correct or not right.credit:
        way_out = "the checker or the column of answers is not what it seems"
        return Finding("checker", "all", measured, "wrong", way_out)
    return Finding("checker", "all", measured, "ok" if right.correct else "differs")


def _wrong_answer(problem: Problem, problems: Sequence[Problem]) -> str:
    """The answer to another problem that the default's rules tell from the right one, or none."""
    if problem.kind in UNGRADED:
        return _NO_ANSWER
    rules = Checker()
    try:
        answers = [f"Answer: {other.gold}" for other in problems if other.kind == problem.kind]
        verdicts = rules.check_many([(answer, problem) for answer in answers])
    finally:
        rules.close()
    pairs = zip(answers, verdicts, strict=True)
    return next((answer for answer, verdict in pairs if not verdict.credit), _NO_ANSWER)


def _describe(verdict: Verdict) -> str:
    return "right" if verdict.correct else f"{verdict.credit:g}" if verdict.credit else "wrong"
