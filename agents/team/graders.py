"""Graders that replace the default comparison: programs, a judge, another checker."""

import asyncio
import os
import threading
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, get_args

import numpy as np

from coterie.agents.team.model_specs import check_models
from coterie.agents.team.settings import AgentSettings, ScoringSettings
from coterie.agents.team.team import build_team
from coterie.cli.extras import PROGRAM_GRADER
from coterie.datatypes import (
    AnswerKind,
    PolicyFailure,
    Problem,
    Prompt,
    Sampling,
    UserError,
    derive_seed,
    ids_per_token,
)
from coterie.datatypes.thinking import as_said, opened_by
from coterie.experts.naming import is_human
from coterie.rewards.grading.answers.checker import UNGRADED
from coterie.rewards.grading.checkers import DEFAULT, ProcessChecker, kinds_of
from coterie.rewards.grading.judged import JudgeGrader
from coterie.rewards.grading.scorer import AnswerScorer, Grader

_ROLE = "judge"
_EXAMPLE = Problem("an example", "What is 1 + 1?", "2", "number")
"""The problem for a trial call of a checker, if no problems are known."""
_MOST_WORKERS = 4 * (os.cpu_count() or 1)


class Judge:
    """A policy for synchronous callers, on its own event loop in a thread."""

    def __init__(self, name: str, *, max_new_tokens: int) -> None:
        """
        Args:
            name: a model as for ``--agents.ROLE.model``.
            max_new_tokens: longest reply.
        """
        self._team = build_team({_ROLE: AgentSettings(name)})
        limit = max_new_tokens * ids_per_token(self._team.codecs[_ROLE])
        self._sampling = Sampling(limit, temperature=0.0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __call__(self, prompts: Sequence[str]) -> list[str | None]:
        """Return the reply to each prompt; None if the judge failed."""
        return asyncio.run_coroutine_threadsafe(self._replies(prompts), self._loop).result()

    def close(self) -> None:
        """Close connections and the event loop."""
        asyncio.run_coroutine_threadsafe(self._team.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _replies(self, prompts: Sequence[str]) -> list[str | None]:
        return list(await asyncio.gather(*map(self._reply, prompts)))

    async def _reply(self, text: str) -> str | None:
        codec = self._team.codecs[_ROLE]
        tokens = np.array(codec.open(text), dtype=np.int64)
        prompt = Prompt(tokens, text, f"{_ROLE}_0", derive_seed(_ROLE, text))
        try:
            completion = await self._team.policies[_ROLE](prompt, self._sampling)
        except PolicyFailure:
            return None
        return as_said(opened_by(codec, tokens), codec.decode(completion.tokens))


def checker_of(settings: ScoringSettings) -> ProcessChecker | None:
    """Return the checker of the settings, which the caller must close; None for the default."""
    if settings.checker == DEFAULT:
        return None
    return ProcessChecker(
        settings.checker, workers=settings.workers, deadline_s=settings.deadline_s
    )


def judged_kinds(settings: ScoringSettings) -> tuple[AnswerKind, ...]:
    """Return the kinds of problems that the checker grades instead of the default."""
    kinds = kinds_of(settings.checker)
    return get_args(AnswerKind) if kinds is None else kinds


def build_scorer(settings: ScoringSettings) -> AnswerScorer:
    """Return the scorer of a run with its graders, which the caller must close."""
    graders: dict[AnswerKind, Grader] = {}
    if (checker := checker_of(settings)) is not None:
        graders |= dict.fromkeys(judged_kinds(settings), checker)
    if settings.programs:
        graders["code"] = _programs().grader_of(settings)
    if settings.judge:
        judge = Judge(settings.judge, max_new_tokens=settings.judge_max_new_tokens)
        graders["judged"] = JudgeGrader(judge)
    return AnswerScorer(
        encoder=settings.encoder,
        workers=settings.workers,
        deadline_s=settings.deadline_s,
        graders=graders,
    )


def check_graders(settings: ScoringSettings, problems: Iterable[Problem]) -> None:
    """Refuse problems without a grader, and graders without problems, before anything is sampled.

    Raises:
        UserError: names the flag.
    """
    if is_human(settings.judge):
        raise UserError("--scoring.judge: a person plays a role and does not grade; name a model")
    if settings.workers > _MOST_WORKERS:
        raise UserError(
            f"--scoring.workers must be 1 to {_MOST_WORKERS}, four for each processor here"
        )
    wanted = _kinds(problems)
    judged = judged_kinds(settings)
    named: dict[AnswerKind, bool] = {"code": settings.programs, "judged": bool(settings.judge)}
    flags: dict[AnswerKind, str] = {"code": "--scoring.programs", "judged": "--scoring.judge"}
    for kind, given in named.items():
        example = wanted.get(kind)
        if given and kind in judged:
            raise UserError(
                f"--scoring.checker {settings.checker} judges problems of every kind; leave out "
                f"{flags[kind]}, or the checker"
            )
        if example and not given and kind not in judged:
            raise UserError(f"{example.id} is of kind {kind}: {UNGRADED[kind]}")
        if given and not example:
            raise UserError(f"no problem here is of kind {kind}; leave out {flags[kind]}")
    if settings.programs:
        _programs().check(settings)
    if settings.judge:
        check_models({_ROLE: AgentSettings(settings.judge, trained=False)})
    checker = checker_of(settings)
    if checker is not None:
        examples = [problem for kind, problem in wanted.items() if kind in judged]
        try:
            checker.probe(examples or [_EXAMPLE])
        finally:
            checker.close()


def _programs() -> Any:
    """The module that grades programs."""
    return import_module(PROGRAM_GRADER)


def _kinds(problems: Iterable[Problem]) -> dict[AnswerKind, Problem]:
    """Kind -> a problem of that kind."""
    example_by_kind: dict[AnswerKind, Problem] = {}
    for problem in problems:
        example_by_kind.setdefault(problem.kind, problem)
    return example_by_kind
