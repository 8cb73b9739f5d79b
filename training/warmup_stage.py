"""Imitation before reward: the steps of the warm-up."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from rich.console import Console

from coterie.agents.team.backend import RoleLearner
from coterie.agents.team.team import Team
from coterie.algorithms.imitation import worked_row
from coterie.algorithms.nonfinite import NotFinite
from coterie.datatypes import Problem, TokenCodec, Trajectory, UserError
from coterie.datatypes.thinking import behind_thought, opened_by
from coterie.problems.stream import ProblemStream
from coterie.training.prompt_limit import opening_prompts
from coterie.training.run.directory import RunDirectory
from coterie.training.run.log import Logbook
from coterie.training.run.stage_progress import learning
from coterie.training.warmup import Check, WarmupSettings, answer_of, other_form

_LOOKED_AT = 32
"""Worked solutions whose form is compared with the prompt's."""
_PAGE = "docs/problems.md"


class WarmUp:
    """Has roles learn worked solutions, after the prompts of their environment."""

    def __init__(
        self,
        team: Team,
        streams: Mapping[str, ProblemStream],
        make_env: Callable[[], Any],
        settings: WarmupSettings,
        check: Check,
    ) -> None:
        """Args:
        team: whose roles learn.
        streams: the worked solutions of each role that is warmed up.
        make_env: builds the environment with the models' vocabularies.
        settings: of the warm-up.
        check: the run's, which reads the answers of worked solutions.
        """
        self._team, self._streams, self._check = team, streams, check
        self._env = make_env() if streams else None
        self.last, self._count = settings.steps, settings.problems_per_step
        """Steps of imitation; 0: none."""

    def other_forms(self) -> dict[str, str]:
        """Role -> a sentence, where worked solutions end in another form than its prompt asks
        for."""
        sentences: dict[str, str] = {}
        for role, stream in self._streams.items():
            problems = [stream.at(place) for place in range(_LOOKED_AT)]
            forms = [other_form(p, self._asked(role, p)[1], self._check) for p in problems]
            if count := sum(map(bool, forms)):
                form = next(filter(None, forms))
                sentences[role] = (
                    f"{count} of {_LOOKED_AT} worked solutions of {role} end in another form than "
                    f"its prompt asks for, {form}, so imitation teaches that other form: leave out "
                    f"their last line, and the right one is added ({_PAGE})"
                )
        return sentences

    def steps(
        self,
        first: int,
        run: RunDirectory,
        console: Console,
        check: Callable[[], None],
        *,
        lines: bool = False,
    ) -> Iterator[int]:
        """Do and log every step from ``first`` on, and yield its number. After the last step reward
        training begins from the weights of that moment.

        Args:
            first: number of the first step.
            run: gets the logs.
            console: shows progress.
            check: called after each step; raises to stop.
            lines: whether a step takes so long that its progress is shown.

        Raises:
            UserError: weights or losses are no finite numbers.
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
                    lines=lines,
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
                    self._team.learn(lambda role, trained: trained.begin())
                yield number
                check()

    def step(self, number: int) -> dict[str, float]:
        """Do step ``number``, from 1, for every role that is warmed up; metrics by ``NAME/ROLE``.
        It depends on the number and the weights alone."""

        def imitated(role: str, trained: RoleLearner) -> dict[str, float]:
            return trained.imitate(self.rows(role, number)) if role in self._streams else {}

        return {
            f"{name}/{role}": value
            for role, metrics in self._team.learn(imitated).items()
            for name, value in metrics.items()
        }

    def rows(self, role: str, number: int) -> list[Trajectory]:
        """The worked rows that ``role`` imitates in step ``number``."""
        first = (number - 1) * self._count
        problems = [self._streams[role].at(first + place) for place in range(self._count)]
        return [self._row(role, problem) for problem in problems]

    def _row(self, role: str, problem: Problem) -> Trajectory:
        codec: TokenCodec = self._team.codecs[role]
        given, asked = self._asked(role, problem)
        answer = answer_of(problem, self._check, asked)
        assert answer is not None, f"{problem.id} was left out"
        # After a prompt of plain text a word begins with its space.
        lead = "" if asked[-1:].isspace() else " "
        # Where the template opens a thought, the solution stands behind it, as an answer must.
        text = behind_thought(opened_by(codec, given), lead + answer)
        return worked_row(codec, given, text, role=role, problem=problem.id)

    def _asked(self, role: str, problem: Problem) -> tuple[list[int], str]:
        """(the tokens, the text) of the prompt with which ``role`` is asked ``problem``."""
        codec: TokenCodec = self._team.codecs[role]
        given = opening_prompts(self._env, problem)[role]
        return list(given), codec.decode(np.asarray(given, dtype=np.int64))
