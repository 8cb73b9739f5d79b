"""The steps of the warm-up, in which roles imitate worked solutions."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from coterie.agents.team.backend import RoleLearner
from coterie.agents.team.team import Team
from coterie.algorithms.imitation import worked_row
from coterie.algorithms.nonfinite import NotFinite
from coterie.datatypes import Problem, TokenCodec, Trajectory, UserError
from coterie.datatypes.thinking import behind_thought, opened_by
from coterie.problems.solutions import solution_of
from coterie.problems.stream import ProblemStream
from coterie.training.prompt_limit import opening_prompts
from coterie.training.run.directory import RunDirectory
from coterie.training.run.log import Logbook
from coterie.training.run.stage_progress import learning
from coterie.training.warmup import Check, WarmupSettings, answer_of, other_form

_INSPECTED = 32
"""Number of worked solutions whose form is compared with that of the prompt."""
_PAGE = "docs/problems.md"


class WarmUp:
    """Lets roles imitate worked solutions, after the prompts of their environment."""

    def __init__(
        self,
        team: Team,
        streams: Mapping[str, ProblemStream],
        make_env: Callable[[], Any],
        settings: WarmupSettings,
        check: Check,
    ) -> None:
        """
        Args:
            team: whose roles learn.
            streams: the worked solutions of each role that is warmed up.
            make_env: builds the environment with the models' vocabularies.
            settings: of the warm-up.
            check: grades worked solutions.
        """
        self._team, self._streams, self._check = team, streams, check
        self._env = make_env() if streams else None
        self.last, self._count = settings.steps, settings.problems_per_step
        """Number of the last step; 0: there is no warm-up."""

    def other_forms(self) -> dict[str, str]:
        """Role -> a sentence, if its worked solutions end in another form than its prompts ask
        for."""
        sentences: dict[str, str] = {}
        for role, stream in self._streams.items():
            problems = [stream.at(index) for index in range(_INSPECTED)]
            forms = [other_form(p, self._prompt(role, p)[1], self._check) for p in problems]
            if count := sum(map(bool, forms)):
                form = next(filter(None, forms))
                sentences[role] = (
                    f"{count} of {_INSPECTED} worked solutions of {role} end in another form than "
                    f"its prompt asks for, {form}, so imitation teaches that other form: leave out "
                    f"their last line, and the right one is added ({_PAGE})"
                )
        return sentences

    def drop_long(self, tell: Callable[[str], None]) -> None:
        """Leave out worked solutions that do not fit into their role's context.

        Args:
            tell: shows a sentence on the dropped ones of a role.

        Raises:
            UserError: none of a role's fits.
        """
        for role, stream in self._streams.items():
            context: int | None = getattr(self._team.codecs[role], "context", None)
            if context is None:
                continue
            before = stream.available
            dropped = stream.leave_out(
                partial(self._is_long, role, context, len(self._prompt(role, stream.at(0))[0])),
                f"none of its worked solutions fits into the context of {role}, {context} tokens: "
                f"raise --agents.{role}.context, or leave out --warmup.steps",
            )
            if dropped:
                tell(
                    f"{dropped:,} of {before:,} worked solutions of {role} are left out: they do "
                    f"not fit into its context of {context:,} tokens"
                )

    def _is_long(self, role: str, context: int, usual: int, problem: Problem) -> bool:
        """Whether a worked row has more tokens than ``context``; ``usual``: those of a prompt."""
        # A token has at least a byte: most rows need not be written down to be short enough.
        texts = (problem.question, *problem.choices, solution_of(problem) or "")
        if usual + 2 * sum(len(text.encode()) for text in texts) < context:
            return False
        return len(self._row(role, problem).tokens) > context

    def steps(
        self,
        first: int,
        run: RunDirectory,
        console: Console,
        check: Callable[[], None],
        *,
        slow: bool = False,
    ) -> Iterator[int]:
        """Do and log every step from ``first`` on, and yield its number.

        Args:
            first: number of the first step.
            run: gets the logs.
            console: shows progress.
            check: called after each step; raises to stop.
            slow: whether the models are, so that progress is shown within a step.

        Raises:
            UserError: weights or losses are not finite.
        """
        headline = [f"loss/{role}" for role in self._streams]
        with Logbook(
            run, console, first=first, last=self.last, headline=headline, stage="warmup"
        ) as book:
            for number in range(first, self.last + 1):
                shown = learning(
                    console,
                    f"warmup step {number}",
                    self._count * len(self._streams),
                    slow=slow,
                    bar=book.part,
                )
                try:
                    with shown:
                        metrics = self.step(number)
                except NotFinite as why:
                    raise UserError(
                        f"warm-up step {number}: {why}; start a new run with a lower --warmup.lr"
                    ) from None
                book.step(number, metrics)
                if number == self.last:
                    # Reward training begins from these weights, with an optimizer of its own.
                    self._team.backend.learn(lambda role, trained: trained.begin())
                yield number
                check()

    def step(self, number: int) -> dict[str, float]:
        """Do step ``number``, from 1, for every role that is warmed up.

        Returns:
            Metrics by ``NAME/ROLE``.
        """

        def imitated(role: str, trained: RoleLearner) -> dict[str, float]:
            return trained.imitate(self.rows(role, number)) if role in self._streams else {}

        return {
            f"{name}/{role}": value
            for role, metrics in self._team.backend.learn(imitated).items()
            for name, value in metrics.items()
        }

    def rows(self, role: str, number: int) -> list[Trajectory]:
        """The worked rows that ``role`` imitates in step ``number``."""
        first = (number - 1) * self._count
        problems = [self._streams[role].at(first + index) for index in range(self._count)]
        return [self._row(role, problem) for problem in problems]

    def _row(self, role: str, problem: Problem) -> Trajectory:
        codec: TokenCodec = self._team.codecs[role]
        prompt_ids, prompt = self._prompt(role, problem)
        answer = answer_of(problem, self._check, prompt)
        assert answer is not None, f"{problem.id} should have been left out of the stream"
        # The first token of an answer to a plain text includes the space before it.
        lead = "" if prompt[-1:].isspace() else " "
        # If the template opens a thought, the solution must follow it: a thought is no answer.
        text = behind_thought(opened_by(codec, prompt_ids), lead + answer)
        return worked_row(codec, prompt_ids, text, role=role, problem=problem.id)

    def _prompt(self, role: str, problem: Problem) -> tuple[list[int], str]:
        """(ids, text) of the first prompt of ``role`` in an episode about ``problem``."""
        codec: TokenCodec = self._team.codecs[role]
        prompt_ids = opening_prompts(self._env, problem)[role]
        return list(prompt_ids), codec.decode(np.asarray(prompt_ids, dtype=np.int64))
