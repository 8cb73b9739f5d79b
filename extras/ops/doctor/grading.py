"""Check the checker of answers: it loads, and tells a right answer from a wrong one."""

from collections.abc import Sequence

from coterie.agents.team.graders import checker_of, judged_kinds
from coterie.agents.team.settings import ScoringSettings
from coterie.datatypes import Problem, UserError, Verdict
from coterie.extras.ops.doctor.finding import Finding
from coterie.rewards.grading.answers.checker import UNGRADED, Checker
from coterie.rewards.grading.scorer import AnswerScorer

_FORMS = ("{}", "Answer: {}", r"\boxed{{{}}}")
"""How a right answer may be written; a checker may read one of them only."""
_NO_ANSWER = "I am not sure."


def check_checker(settings: ScoringSettings, problems: Sequence[Problem]) -> Finding:
    """Grade a right and a wrong answer to the first problem whose answers are compared."""
    name, said = f"--scoring.checker {settings.checker}", list[str]()
    judged = judged_kinds(settings)
    compared = [p for p in problems if p.kind in judged or p.kind not in UNGRADED]
    if not compared:
        return Finding("checker", "all", f"{name} compares no problem of these", "not measured")
    problem = compared[0]
    checker = checker_of(settings, said.append)
    graders = dict.fromkeys(judged, checker) if checker is not None else {}
    scorer = AnswerScorer(workers=1, deadline_s=settings.deadline_s, graders=graders)
    try:
        rights = [scorer.check(form.format(problem.gold), problem) for form in _FORMS]
        wrong = scorer.check(_wrong_answer(problem, problems), problem)
    except UserError as mistake:
        return Finding("checker", "all", str(mistake), "wrong", "name another --scoring.checker")
    finally:
        scorer.close()
        if checker is not None:
            checker.close()
    right = max(rights, key=lambda verdict: verdict.credit)
    measured = (
        f"{name}: {_said(right)} for the reference answer {problem.gold!r:.40}, "
        f"{_said(wrong)} for a wrong one"
    )
    if said:
        return Finding("checker", "all", said[0], "wrong", "mend the checker")
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


def _said(verdict: Verdict) -> str:
    return "right" if verdict.correct else f"{verdict.credit:g}" if verdict.credit else "wrong"
