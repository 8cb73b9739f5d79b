"""The warm-up's settings and worked solutions, checked before any model is loaded.

:mod:`coterie.training.warmup_stage` does its steps.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from annotated_types import Ge, Gt

from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import Problem, UserError, Validated, Verdict
from coterie.problems.canonical import problem_key
from coterie.problems.hub import known_overlap
from coterie.problems.prepare import PreparedProblems, ProblemSettings, open_training
from coterie.problems.solutions import solution_of
from coterie.problems.source import ProblemSource, keys_of
from coterie.problems.split import contaminated_keys
from coterie.problems.stream import ProblemStream
from coterie.rewards.grading.checkers import LONGEST
from coterie.training.config.run_settings import ProblemsPerStep


@dataclass(frozen=True)
class _Form:
    """A form of answers."""

    words: str
    line: str
    """The last line of an answer; ``{}`` stands for the gold answer."""


_FORMS = {
    "\\boxed": _Form("\\boxed{}", "\\boxed{{{}}}"),
    "<final_answer>": _Form("<final_answer>", "<final_answer>{}</final_answer>"),
    "Answer:": _Form("a line `Answer: ...`", "Answer: {}"),
}
"""Mark of a form in prompts and answers -> the form."""

NOBODY = "none"
"""The value of ``--agents.ROLE.warmup`` for a role without a warm-up."""

Check = Callable[[str, Problem], Verdict]
"""Grades a response to a problem."""


@dataclass(frozen=True)
class WarmupSettings(Validated):
    """Imitation of worked solutions, before reward training."""

    steps: Annotated[int, Ge(0)] = 0
    """Imitation steps before step 1, for each trained role; 0: none."""
    problems: str | None = None
    """Problems with worked solutions, named as for --problems.train; default: the training
    problems. One role's own: --agents.ROLE.warmup."""
    problems_per_step: ProblemsPerStep = 16
    """Solutions in one imitation step of a role."""
    lr: Annotated[float, Gt(0)] = 1e-4
    """Peak learning rate: linear warm-up over a tenth of the steps, then down to 0."""

    def check(self) -> None:
        idle = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        if idle and not self.steps:
            flag = f"--warmup.{idle[0].replace('_', '-')}"
            raise UserError(f"{flag} does nothing without --warmup.steps, such as 100")


def prepare_warmup(
    settings: WarmupSettings,
    agents: Mapping[str, AgentSettings],
    problems: ProblemSettings,
    prepared: PreparedProblems,
    seed: int,
    check: Check,
) -> tuple[dict[str, ProblemStream], dict[str, str]]:
    """Open the worked solutions of each role that is warmed up.

    Args:
        settings: of the warm-up.
        agents: role -> who plays it.
        problems: settings of the run's problems, which are the default.
        prepared: the run's problems; held-out ones are left out.
        seed: of the run.
        check: grades worked solutions.

    Returns:
        (role -> its problems, flag that names a source -> the source's fingerprint).

    Raises:
        UserError: a set without worked solutions.
    """
    if not settings.steps:
        return {}, {}
    opened: dict[str, tuple[ProblemSource, ...]] = {}
    streams: dict[str, ProblemStream] = {}
    fingerprints: dict[str, str] = {}
    for role, agent in agents.items():
        if not agent.trained or agent.warmup == NOBODY:
            continue
        text = agent.warmup or settings.problems or ""
        # A single name is read as it is, without a weight.
        chosen = replace(problems, train=text) if text else problems
        if text not in opened:
            opened[text] = open_training(chosen, seed, worked=True)
        sources = opened[text]
        stream = _stream(chosen, sources, problems.evaluated, prepared.evaluation, seed, check)
        if not text and problems.limit is not None:
            few = {key for source in prepared.train.sources for key in keys_of(source)}
            stream.leave_out(
                lambda problem, few=few: problem_key(problem) not in few,
                "none of the problems that --problems.limit keeps has a worked solution: raise "
                "it, or name a set with --warmup.problems",
            )
        streams[role] = stream
        flag = f"--agents.{role}.warmup" if agent.warmup else "--warmup.problems"
        fingerprints[flag] = _fingerprint(sources)
    return streams, fingerprints


def answer_of(problem: Problem, check: Check, prompt: str = "") -> str | None:
    """The worked solution of a problem as an answer that ``check`` grades as right.

    A solution that states its answer is unchanged. Any other gets a last line with the answer.

    Args:
        problem: with its solution in ``meta``.
        check: grades answers.
        prompt: decides the form of the last line, unless the answer cannot be read in it.

    Returns:
        The answer; None without a solution, or if it states a wrong answer.
    """
    solution = solution_of(problem)
    if solution is None:
        return None
    if problem.kind == "code":
        return f"```python\n{problem.meta.get('code_prompt', '')}{solution}\n```"
    with_answer = f"{solution}\n{_last_line(prompt, problem.gold)}"
    if problem.kind == "judged":
        return with_answer
    verdict = check(solution, problem)
    if verdict.correct:
        return solution
    # For a text without a stated answer, a custom checker's verdict shows the end of the text.
    states_none = verdict.answer in (None, solution.strip()[-LONGEST:])
    # No box holds a lone brace, and a backslash at the end would escape the box's own.
    forms = dict.fromkeys((with_answer, f"{solution}\n{_last_line('', problem.gold)}"))
    right = (form for form in forms if check(form, problem).correct)
    return next(right, None) if states_none else None


def other_form(problem: Problem, prompt: str, check: Check) -> str:
    """The form of answer that the prompt asks for, if the worked solution has another; else
    empty."""
    solution = solution_of(problem)
    if solution is None or problem.kind in ("code", "judged"):
        return ""
    # "Answer:" at the end of a prompt begins the answer, and asks for no form.
    instructions = prompt.rstrip().removesuffix("Answer:")
    mark = next((mark for mark in _FORMS if mark in instructions), "")
    is_other = mark not in solution and check(solution, problem).correct
    return _FORMS[mark].words if is_other else ""


def _last_line(prompt: str, gold: str) -> str:
    form = next((form for mark, form in _FORMS.items() if mark in prompt), _FORMS["Answer:"])
    return form.line.format(gold)


def check_warmup(settings: WarmupSettings, agents: Mapping[str, AgentSettings]) -> None:
    """Refuse a warm-up without a role, or a role's ``--agents.ROLE.warmup`` without a warm-up.

    Raises:
        UserError: one sentence that names the flag.
    """
    for role, agent in agents.items():
        flag = f"--agents.{role}.warmup {agent.warmup}"
        if agent.warmup and not settings.steps:
            raise UserError(f"{flag} does nothing without --warmup.steps, such as 100")
        if agent.warmup not in ("", NOBODY) and not agent.trained:
            raise UserError(f"{flag}: {role} is frozen; name it with --train-role, or leave it out")
    learners = [agent for agent in agents.values() if agent.trained]
    if settings.steps and all(agent.warmup == NOBODY for agent in learners):
        raise UserError(
            f"--warmup.steps {settings.steps} has no role to warm up: every role that learns has "
            "--agents.ROLE.warmup none; leave out one of these, or --warmup.steps"
        )


def _stream(
    problems: ProblemSettings,
    sources: tuple[ProblemSource, ...],
    evaluated: Sequence[str],
    evaluation: Sequence[Problem],
    seed: int,
    check: Check,
) -> ProblemStream:
    exclude = frozenset(problem_key(problem) for problem in evaluation)
    for text, source in zip(problems.sources, sources, strict=True):
        if problems.decontaminate or any(known_overlap(text, name) for name in evaluated):
            exclude |= contaminated_keys(source, evaluation)
    stream = ProblemStream(sources, seed, exclude, weights=problems.weights)
    stream.leave_out(
        lambda problem: answer_of(problem, check) is None,
        "none of its problems has a worked solution that ends in its answer: name a set with a "
        "column solution with --warmup.problems, or leave out --warmup.steps",
    )
    return stream


def _fingerprint(sources: Sequence[ProblemSource]) -> str:
    """SHA-256 of problems and solutions."""
    parts: list[Any] = []
    for source in sources:
        solutions = [solution_of(source[index]) for index in range(source.size or 0)]
        parts += [source.fingerprint, solutions]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
